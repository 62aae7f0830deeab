"""The dashboard in headless Chromium, over a server that works; its screenshots stay in SWITCHYARD_SCREENSHOTS."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import browser
import switchyard_process

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
SCREENSHOTS = pathlib.Path(os.environ.get("SWITCHYARD_SCREENSHOTS", tempfile.gettempdir()))
BROWSER = browser.PROGRAM
BROWSER_TIMEOUT_S = 120
LIGHT, DARK = 1, 0  # Blink's preferredColorScheme


@unittest.skipIf(BROWSER is None, "no chromium here; tools/install_dependencies.sh test installs it")
class TestDashboard(unittest.TestCase):
    def browse(self, url, *arguments):
        """What Chromium prints of the page, seconds of the page's own time after it was opened."""
        with tempfile.TemporaryDirectory() as profile:
            command = [
                BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                f"--user-data-dir={profile}", "--virtual-time-budget=8000", *arguments, url,
            ]
            finished = subprocess.run(command, capture_output=True, text=True, timeout=BROWSER_TIMEOUT_S)
            self.assertEqual(finished.returncode, 0, finished.stderr)
            return finished.stdout

    def screenshot(self, url, name, width, height, scheme):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        path.unlink(missing_ok=True)
        self.browse(url, f"--screenshot={path}", f"--window-size={width},{height}", f"--blink-settings=preferredColorScheme={scheme}")
        return path.read_bytes()

    def test_shows_a_living_heat_map_in_light_and_dark_and_on_a_phone(self):
        with switchyard_process.ServerProcess(MODELS / "bible-moa", "--http", "127.0.0.1:0") as server:
            switchyard_process.run("health", "--server", server.address, "--wait", 60)
            finished = switchyard_process.run(
                "generate", "--server", server.address, "--prompt", "And the king said", "--max-tokens", 64, "--ignore-eos"
            )
            self.assertEqual(finished.returncode, 0, finished.stderr)
            url = f"http://127.0.0.1:{server.http_port()}/"

            page = self.browse(url, "--dump-dom")
            light = self.screenshot(url, "dashboard_light", 1200, 900, LIGHT)
            dark = self.screenshot(url, "dashboard_dark", 1200, 900, DARK)
            phone = self.screenshot(url, "dashboard_phone", 500, 1000, LIGHT)

        refreshes = int(re.search(r'data-refreshes="(\d+)"', page).group(1))
        self.assertGreater(refreshes, 1)
        self.assertIn(">ready<", page)
        # 4 layers of 4 attention and 4 feed-forward experts, each with what the pointer shows.
        self.assertEqual(len(re.findall(r'class="cell[^"]*"', page)), 2 * 4 * 4)
        self.assertRegex(page, r'title="layer 0, attn, expert 0: [\d,]+ tokens, [\d.]+ of the fair share"')
        self.assertRegex(page, r'title="layer 3, ffn: [\d.]+ effective experts, coefficient of variation [\d.]+, margin [\d.]+"')
        for picture in (light, dark, phone):
            self.assertEqual(picture[:8], b"\x89PNG\r\n\x1a\n")
        self.assertNotEqual(light, dark)

    def test_asks_for_the_key_of_a_server_that_wants_one_and_keeps_it_for_the_tab(self):
        made = switchyard_process.run("api-key", "--name", "ann")
        key = made.stdout.strip()
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder, "keys.json")
            keys.write_text('{"keys": [' + made.stderr.splitlines()[1] + "]}", encoding="utf-8")
            flags = ("--http", "127.0.0.1:0", "--api-keys", keys)
            with switchyard_process.ServerProcess(MODELS / "bible-moa", *flags) as server, browser.Browser() as page:
                switchyard_process.run("health", "--server", server.address, "--wait", 60)
                url = f"http://127.0.0.1:{server.http_port()}/"
                asks = "document.getElementById('access') && !document.getElementById('access').hidden"
                shows = "document.getElementById('state').textContent === 'ready' && document.querySelectorAll('.cell').length === 32"

                page.open(url)
                self.assertTrue(page.wait_until(asks))
                self.assertEqual(page.evaluate("document.querySelectorAll('.cell').length"), 0)

                self.type_key(page, "sy_" + 43 * "a")
                told = "document.getElementById('access-told').textContent"
                self.assertTrue(page.wait_until(f"({asks}) && {told} === 'The server does not know this key.'"))
                self.assertIsNone(page.evaluate("sessionStorage.getItem('switchyard-api-key')"))

                self.type_key(page, key)
                self.assertTrue(page.wait_until(shows), page.evaluate("document.body.innerText"))
                self.assertNotIn(key, page.evaluate("document.documentElement.outerHTML + location.href"))

                page.evaluate("window.isOld = true; location.reload()")
                self.assertTrue(page.wait_until(f"!window.isOld && document.body && {shows}"))

                page.evaluate("document.getElementById('forget').click()")
                self.assertTrue(page.evaluate(asks))
                self.assertEqual(page.evaluate("sessionStorage.length + localStorage.length"), 0)

    def type_key(self, page, key):
        page.evaluate(
            f"document.getElementById('key').value = {json.dumps(key)}; document.getElementById('access').requestSubmit()"
        )


if __name__ == "__main__":
    unittest.main()
