"""Headless Chromium, told what to do over the pipe of its DevTools protocol: no package drives it."""

import json
import os
import select
import shutil
import subprocess
import tempfile

PROGRAM = shutil.which("chromium")
ANSWER_TIMEOUT_S = 60
SERVER_ERROR = -32000  # of JSON-RPC: the protocol has no code of its own for a page that goes while it is asked


class PageLeft(RuntimeError):
    """The page went, and with it what it was asked."""


class Browser:
    """One page. Ends with the `with` block."""

    def __init__(self):
        self._profile = tempfile.TemporaryDirectory()
        commands_out, self._commands = os.pipe()
        self._answers, answers_in = os.pipe()
        command = [
            PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
            f"--user-data-dir={self._profile.name}", "about:blank",
        ]
        # The protocol's pipes are the files 3 and 4.
        self._process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{commands_out} 4>&{answers_in}', "sh", *command],
            pass_fds=(commands_out, answers_in), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands_out)
        os.close(answers_in)
        self._unread, self._last_id, self._session = b"", 0, None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def open(self, url):
        self._call("Page.navigate", url=url)

    def evaluate(self, expression):
        """The value of the page's expression, or of the promise that it is."""
        answer = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_until(self, expression):
        """Returns when the expression is true; False when it is not within the time of an answer. Goes on asking the next page
        where one takes the other's place."""
        promise = (
            "new Promise(done => { const end = Date.now() + %d; const look = () => (%s) ? done(true) : "
            "Date.now() > end ? done(false) : setTimeout(look, 20); look(); })" % (500 * ANSWER_TIMEOUT_S, expression)
        )
        while True:
            try:
                return self.evaluate(promise)
            except PageLeft:
                continue

    def _call(self, method, **parameters):
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last_id:
                if answer.get("error", {}).get("code") == SERVER_ERROR:
                    raise PageLeft(f"{method}: {answer['error']}")
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _read(self):
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._answers], [], [], ANSWER_TIMEOUT_S)
            part = os.read(self._answers, 1 << 16) if ready else b""
            if not part:
                raise RuntimeError("the browser does not answer")
            self._unread += part
        message, self._unread = self._unread.split(b"\0", 1)
        return json.loads(message)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        os.close(self._commands)
        os.close(self._answers)
        self._process.terminate()
        self._process.wait(ANSWER_TIMEOUT_S)
        self._profile.cleanup()
