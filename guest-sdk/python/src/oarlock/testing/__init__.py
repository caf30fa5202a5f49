"""Unit tests of a plugin without Wasm: a host with a cluster in memory.

    def test_a_deployment_is_restarted():
        with FakeHost(plugin) as host:
            host.apply("v1/configmaps", {"metadata": {"namespace": "a", "name": "settings"}, "data": {}})
            host.run()
            assert host.writes == [...]

`apply` and `delete` change the cluster and call the handlers; `run` reconciles the keys of the work queue. An
exception of the plugin reaches the test. Access rights, limits and time that passes are not simulated: for
these, `oarlock plugin test` runs the component on the real host.
"""

from .host import FakeHost
from .imports import Emitted, Logged, Write

__all__ = ["Emitted", "FakeHost", "Logged", "Write"]
