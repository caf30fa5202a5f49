"""The handlers of kopf's examples/05-handlers, as an Oarlock plugin. example.py is that of kopf, unchanged."""

import example  # noqa: F401 - registers the handlers
import kopf

plugin = kopf.plugin(
    "kopf-05-handlers", "0.1.0", resources={"kopfexamples": "kopf.dev/v1/kopfexamples"}
)
