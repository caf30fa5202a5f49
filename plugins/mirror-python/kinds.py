"""The plugin, and the two kinds of objects that it copies."""

from dataclasses import dataclass
from typing import Any

from oarlock import Client, EventRecorder, Index, Lister, Plugin, Watch, annotation, exists

MIRROR_TO = annotation("oarlock.dev/mirror-to")
MIRRORED_FROM = annotation("oarlock.dev/mirrored-from")

# The interval at which a source is reconciled without an event: an object that prevented a copy may be gone.
RESYNC_SECONDS = 300


@dataclass(frozen=True)
class Kind:
    """A kind of object that mirror copies."""

    name: str
    # The fields of a source that a copy has.
    content: tuple[str, ...]
    sources: Watch[dict[str, Any]]
    copies: Watch[dict[str, Any]]
    cache: Lister
    by_target: Index
    by_source: Index
    client: Client
    recorder: EventRecorder


def kind_of(name: str, content: tuple[str, ...]) -> Kind:
    """Declare what the plugin watches, reads and writes of a kind."""
    singular, resource = name.lower(), f"v1/{name.lower()}s"
    sources, copies = f"{singular}-sources", f"{singular}-copies"
    cache = plugin.lister(resource)
    return Kind(
        name,
        content,
        plugin.watch(resource, name=sources, conditions=[exists(MIRROR_TO)], resync=RESYNC_SECONDS),
        plugin.watch(resource, name=copies, conditions=[exists(MIRRORED_FROM)]),
        cache,
        cache.index(sources, pointer=MIRROR_TO),
        cache.index(copies, pointer=MIRRORED_FROM),
        plugin.client(resource, ["get", "create", "patch", "delete"]),
        EventRecorder(resource, name),
    )


plugin = Plugin("mirror-python", "0.1.0", stateless=True)

KINDS = (kind_of("ConfigMap", ("data", "binaryData")), kind_of("Secret", ("data",)))
namespaces = plugin.watch("v1/namespaces")
namespace_cache = plugin.lister("v1/namespaces")
