"""A headless Chromium that is used as a person does: by clicks, keys and file inputs.

    with Browser(c) as browser:
        browser.open("#/buckets")
        browser.click("Create a bucket")

What the browser's console reports as an error fails the test that ran meanwhile, but for what
expect_errors() names.  DFC_TEST_SHOTS names a folder that keeps screenshots."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "blackbox"))
from lib import check, skip, wait_for  # noqa: E402

try:
    from selenium import webdriver
    from selenium.common.exceptions import ElementClickInterceptedException, StaleElementReferenceException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
except ImportError:
    skip("needs the Debian packages chromium, chromium-driver and python3-selenium")

DRIVER = shutil.which("chromedriver")
CHROMIUM = shutil.which("chromium")
if not DRIVER or not CHROMIUM:
    skip("needs the Debian packages chromium, chromium-driver and python3-selenium")

# A button or link by its text, a field by its label; what a dialog covers is not meant.
FIND = """
const [kind, text] = arguments;
const top = document.querySelector("dialog[open]") ?? document;
const seen = (e) => e.getClientRects().length > 0;
const word = (e) => (e.getAttribute("aria-label") ?? e.textContent).trim();
if (kind === "click")
  return [...top.querySelectorAll("button, a, [role=button], summary, label.button")]
    .find((e) => seen(e) && word(e) === text) ?? null;
for (const l of top.querySelectorAll("label"))
  if (l.textContent.trim().startsWith(text) && seen(l)) return l.control ?? l.querySelector("input");
return [...top.querySelectorAll("input, select")].find((e) => e.getAttribute("aria-label") === text) ?? null;
"""

FOCUSABLE = """const top = document.querySelector("dialog[open]") ?? document;
return [...top.querySelectorAll("a[href], button, input, select, textarea, [tabindex]")]
  .filter((e) => e.getClientRects().length > 0 && e.checkVisibility())"""  # not in closed details

# Text whose contrast with what is behind it is less than 4.5:1.
CONTRAST = """
const parse = (c) => (c.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
const light = ([r, g, b]) => [r, g, b].map((x) => x / 255)
  .map((x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
  .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c;
  }
  return [255, 255, 255];
};
const low = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const e = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || e.getClientRects().length === 0 || e.closest(":disabled, noscript")) continue;
  const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) low.push(`${walker.currentNode.data.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
}
return low;
"""


FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-extensions",
         "--disable-sync", "--window-size=1280,900", "--remote-debugging-port=0",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")


def start(profile):
    """Chromium and its address: its driver would give it a minute, which a busy machine may not."""
    process = subprocess.Popen([CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    port_file = os.path.join(profile, "DevToolsActivePort")

    def port():
        check(process.poll() is None, f"Chromium has ended with {process.returncode}")
        if not os.path.exists(port_file):
            return None
        with open(port_file, encoding="ascii") as f:
            return f.readline().strip()
    return process, "127.0.0.1:" + wait_for(port, "Chromium listens", seconds=300)


class Browser:
    def __init__(self, c, node="p1"):
        self.base = c.url(node) + "/ui/"
        self.dir = tempfile.mkdtemp(prefix="dfc-browser-")
        self.downloads = os.path.join(self.dir, "downloads")
        self.process, address = start(os.path.join(self.dir, "profile"))
        options = webdriver.ChromeOptions()
        options.add_experimental_option("debuggerAddress", address)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {
            "behavior": "allow", "downloadPath": self.downloads})
        self.expected = ()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def open(self, hash_=""):
        if self.driver.current_url.startswith(self.base):
            self.driver.execute_script("location.hash = arguments[0]", hash_)
        else:
            self.driver.get(self.base + hash_)

    def text(self):
        return self.driver.execute_script("return document.body.innerText")

    def sees(self, *texts):
        """Waits until the page shows all of them."""
        missing = []

        def all_there():
            page = self.text()
            missing[:] = [t for t in texts if t not in page]
            return not missing
        try:
            wait_for(all_there, f"the page shows {texts}")
        except Exception as error:
            self.shot("failed")
            raise type(error)(f"{error}; missing: {missing}; the page: {self.text()[:1500]}") from error

    def gone(self, text):
        wait_for(lambda: text not in self.text(), f"'{text}' leaves the page")

    def find(self, kind, text):
        found = []

        def there():
            found[:] = [self.driver.execute_script(FIND, kind, text)]
            return found[0] is not None
        wait_for(there, f"the page has {kind} '{text}': {self.text()[:600]}")
        return found[0]

    def click(self, text):
        """A page that is drawn anew may take the element away, and a message may cover it for a
        moment: then once more."""
        def clicked():
            try:
                element = self.find("click", text)
                self.script("arguments[0].scrollIntoView({block: 'center'})", element)
                element.click()
                return True
            except (StaleElementReferenceException, ElementClickInterceptedException):
                return False
        wait_for(clicked, f"a click on '{text}'")

    def click_key(self, key):
        """What is found by its data-key: of many buttons with the same text."""
        wait_for(lambda: self.script("""const e = document.querySelector(`[data-key="${arguments[0]}"]`);
            e?.click(); return Boolean(e)""", key), f"a click on '{key}'")

    def fill(self, label, text):
        field = self.find("field", label)
        if field.tag_name == "select":
            for option in field.find_elements(By.TAG_NAME, "option"):
                if option.text.startswith(text):
                    option.click()
                    return
            check(False, f"'{label}' has no choice '{text}'")
        field.clear()
        field.send_keys(text)

    def upload(self, *paths):
        self.driver.find_element(By.ID, "files").send_keys("\n".join(paths))

    def script(self, text, *args):
        return self.driver.execute_script(text, *args)

    def elements(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def resize(self, width, height=900):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def colours(self, scheme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme},
                         {"name": "prefers-reduced-motion", "value": "reduce"}]})

    def shot(self, name):
        folder = os.environ.get("DFC_TEST_SHOTS")
        if folder:
            self.driver.save_screenshot(os.path.join(folder, name + ".png"))

    def expect_errors(self, *words):
        """Of replies that the test provokes: "401".  Until judge()."""
        self.expected = words

    def judge(self):
        errors = [e["message"] for e in self.driver.get_log("browser") if e["level"] == "SEVERE"]
        wrong = [e for e in errors if not any(word in e for word in self.expected)]
        self.expected = ()
        check(not wrong, f"the browser's console: {json.dumps(wrong)}")
        check(self.script("return window.stolen === undefined"), "a name became a script")

    def accessible(self, where, names=True):
        """Names of all that can have the focus, contrast, and no scrolling sideways."""
        low = self.script(CONTRAST)
        check(not low, f"{where}: low contrast: {low}")
        for e in self.script(FOCUSABLE) if names else ():
            try:
                named = e.tag_name == "main" or e.accessible_name
                check(named, f"{where}: {e.get_attribute('outerHTML')[:120]} has no name")
            except StaleElementReferenceException:
                continue  # the page was drawn anew
        wide = self.script("return document.documentElement.scrollWidth - innerWidth")
        check(wide <= 0, f"{where}: the page is {wide} pixels wider than the window")
