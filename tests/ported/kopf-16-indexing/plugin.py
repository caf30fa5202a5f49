"""The handlers of kopf's examples/16-indexing, as an Oarlock plugin. example.py is that of kopf, unchanged."""

import example  # noqa: F401 - registers the handlers
import kopf

plugin = kopf.plugin("kopf-16-indexing", "0.1.0", resources={"kex": "kopf.dev/v1/kopfexamples"})
