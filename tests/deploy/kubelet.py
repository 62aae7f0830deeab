"""What a kubelet does with the three probes of a container, on a clock that is only a number.

As in Kubernetes: a probe comes each `periodSeconds` after `initialDelaySeconds`; liveness and readiness wait for the first success of
the startup probe; startup and liveness restart the container after `failureThreshold` failures in a row; a container is not
ready until its readiness probe says so. A restart begins everything anew.
"""

KINDS = ("startupProbe", "livenessProbe", "readinessProbe")


class Probe:
    def __init__(self, settings, begins_at):
        self.settings = settings
        self.next_at = begins_at + settings.get("initialDelaySeconds", 0)
        self.failures = 0
        self.successes = 0

    def take(self, passed):
        """Counts a result; True or False when it decides something, else None."""
        self.next_at += self.settings.get("periodSeconds", 10)
        self.successes, self.failures = (self.successes + 1, 0) if passed else (0, self.failures + 1)
        if self.successes >= self.settings.get("successThreshold", 1):
            return True
        return False if self.failures >= self.settings.get("failureThreshold", 3) else None


class Kubelet:
    """`container`: as in a manifest. `ask(probe settings)`: whether the probe passes now."""

    def __init__(self, container, ask):
        self.settings = {kind: container[kind] for kind in KINDS}
        self.ask = ask
        self.now = 0
        self.asked = []  # (second, kind, passed)
        self.restarts = []  # (second, kind)
        self.ready_since = None
        self._begin()

    def _begin(self):
        self.ready_since = None
        self.probes = {"startupProbe": Probe(self.settings["startupProbe"], self.now)}

    def advance(self, until):
        """Plays all probes before that second."""
        while True:
            kind = min(self.probes, key=lambda name: self.probes[name].next_at)
            if self.probes[kind].next_at >= until:
                self.now = until
                return
            self.now = self.probes[kind].next_at
            self._play(kind)

    def _play(self, kind):
        passed = self.ask(self.settings[kind])
        self.asked.append((self.now, kind, passed))
        decided = self.probes[kind].take(passed)
        if decided is None:
            return
        if kind == "readinessProbe":
            self.ready_since = (self.ready_since if self.ready_since is not None else self.now) if decided else None
        elif not decided:
            self.restarts.append((self.now, kind))
            self._begin()
        elif kind == "startupProbe":
            self.probes = {name: Probe(self.settings[name], self.now) for name in KINDS[1:]}
