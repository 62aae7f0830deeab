"""Runs the built program: once for a command, or in the background as a server."""

import os
import re
import signal
import subprocess
import threading

PROGRAM = os.environ["SWITCHYARD_PROGRAM"]
COMMAND_TIMEOUT_S = 120


def run(*arguments, **options):
    """The finished process, with stdout and stderr as text."""
    return subprocess.run(
        [PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, **options
    )


class ServerProcess:
    """`switchyard serve` on a free loopback port, ended with the `with` block."""

    def __init__(self, model_folder, *arguments):
        command = [PROGRAM, "serve", "--model", str(model_folder), "--listen", "127.0.0.1:0", "--threads", "1", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.log = []
        self.address = None
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        self._listening.wait(COMMAND_TIMEOUT_S)
        if self.address is None:
            self.stop()
            raise RuntimeError("the server did not start:\n" + "".join(self.log))

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r"event=listening .*port=(\d+)", line)
            if found:
                self.address = f"127.0.0.1:{found.group(1)}"
                self._listening.set()
        self._listening.set()

    def http_port(self):
        """The port of --http; the log tells it before the model is loaded."""
        return self._port_of("http_listening")

    def admin_port(self):
        """The port of --admin-listen, likewise."""
        return self._port_of("admin_listening")

    def _port_of(self, event):
        for line in self.log:
            found = re.search(rf"event={event} .*port=(\d+)", line)
            if found:
                return int(found.group(1))
        raise RuntimeError(f"the server did not log event={event}:\n" + "".join(self.log))

    def stop(self):
        """Asks it to stop and returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(COMMAND_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self._reader.join()
        self.process.stderr.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.stop()
