"""Looks at report.html, as train/report_sample writes it, in Chromium.

Usage: browser_test.py FOLDER. What is shown is compared with metrics.jsonl and
with the sample's own formulas. The last line is "N passed, N failed".
"""

import json
import math
import pathlib
import sys
import tempfile
import unittest

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
HOSTILE = "</script><b id=\"hostile\">bold</b>&amp;'\""
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND",
]


def rows(name):
    """The sample's values of a metric by step."""
    result = {}
    for line in (FOLDER / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        if name in row:
            result[row["step"]] = float(row[name])
    return result


def number(text):
    text = text.replace("\u2212", "-").replace("\u221e", "inf")
    return float(text.replace(",", ""))


def weight(head, q, k, n_queries, n_keys):
    """The sample's attention weight."""
    row = [math.exp(-0.5 * (head + 1) * abs(q * n_keys / n_queries - i))
           for i in range(n_keys)]
    return row[k] / sum(row)


class ReportTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for flag in FLAGS + ["--user-data-dir=" + cls.profile.name]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.driver = webdriver.Chrome(
            options=options,
            service=webdriver.ChromeService("/usr/bin/chromedriver"))

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()
        cls.profile.cleanup()

    def setUp(self):
        self.cdp("Network.enable")
        self.cdp("Network.emulateNetworkConditions", offline=True, latency=0,
                 downloadThroughput=0, uploadThroughput=0)
        self.media("light")
        self.open(1280)

    def tearDown(self):
        self.assertEqual(self.driver.get_log("browser"), [])
        self.assertEqual(
            self.run_js("return performance.getEntriesByType('resource')"), [])

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def run_js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def settle(self):
        """Two frames: what was resized is drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(done))")

    def open(self, width, name="report.html"):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=800,
                 deviceScaleFactor=1, mobile=False)
        self.driver.get((FOLDER / name).as_uri())
        self.settle()

    def media(self, scheme):
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}])

    def one(self, selector, inside=None):
        return (inside or self.driver).find_element(By.CSS_SELECTOR, selector)

    def all(self, selector, inside=None):
        return (inside or self.driver).find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector, inside=None):
        return [e.get_property("textContent")
                for e in self.all(selector, inside)]

    def chart(self, name):
        charts = [c for c in self.all(".chart")
                  if c.get_attribute("data-name") == name]
        self.assertEqual(len(charts), 1, name)
        return charts[0]

    def legend(self, chart):
        """The step that is shown, and the values by name."""
        step = number(self.texts(".step", chart)[0].removeprefix("step "))
        values = {}
        for item in self.all(".legend li:not(.step)", chart):
            value = self.texts(".value", item)[0]
            name = item.get_property("textContent").split(" " + value)[0]
            values[name] = number(value)
        return step, values

    def assert_shows(self, chart, step, names):
        shown, values = self.legend(chart)
        self.assertEqual(shown, step)
        self.assertEqual(list(values), names)
        for name in names:
            data = rows(name)
            near = min(data, key=lambda s: (abs(s - step), s))
            if math.isfinite(data[near]):
                self.assertAlmostEqual(values[name], data[near],
                                       delta=2e-5 * abs(data[near]))
            else:
                self.assertEqual(repr(values[name]), repr(data[near]))

    def point(self, element, x, y, press=False):
        """Moves the mouse to a place within an element."""
        self.run_js("arguments[0].scrollIntoView({block: 'center'})", element)
        box = self.run_js("const b = arguments[0].getBoundingClientRect();"
                          "return [b.left, b.top]", element)
        builder = ActionBuilder(self.driver, duration=0)
        builder.pointer_action.move_to_location(round(box[0] + x),
                                                round(box[1] + y))
        if press is True:
            builder.pointer_action.pointer_down()
        elif press == "release":
            builder.pointer_action.pointer_up()
        builder.perform()

    def x_of(self, chart, label):
        """Where a step's label stands on the axis."""
        return self.run_js(
            "const [chart, label] = arguments;"
            "const text = [...chart.querySelectorAll('svg text')].find("
            "    (t) => t.textContent === label && t.getAttribute("
            "        'text-anchor') === 'middle');"
            "return Number(text.getAttribute('x'))", chart, label)

    def drag(self, chart, first, last):
        svg = self.one("svg", chart)
        ends = [self.x_of(chart, first), self.x_of(chart, last)]
        self.point(svg, ends[0], 50, press=True)
        self.point(svg, ends[1], 90)
        self.assertTrue(self.all(".selection", chart))
        self.point(svg, ends[1], 90, press="release")

    def range(self):
        return self.texts("#range")[0]

    # The curves.

    def test_every_metric_has_its_curve(self):
        names = ["loss", "lr", "grad_norm", "skipped", HOSTILE, "accuracy",
                 "time/seconds"]
        self.assertEqual(self.texts(".chart h3"), names)
        counts = [2, 1, 1, 1, 1, 1, 1]
        for name, count in zip(names, counts):
            paths = self.all("path.curve", self.chart(name))
            self.assertEqual(len(paths), count)
            for path in paths:
                self.assertGreater(len(path.get_attribute("d")), 100)

    def test_a_hover_shows_the_values(self):
        chart = self.chart("loss")
        svg = self.one("svg", chart)
        self.assert_shows(chart, 2000, ["loss", "eval/loss"])
        for label in ["400", "1,000", "1,600"]:
            self.point(svg, self.x_of(chart, label), 60)
            step = int(number(label))
            self.assert_shows(chart, step, ["loss", "eval/loss"])
            self.assertEqual(len(self.all(".crosshair", chart)), 1)
            # The other charts follow.
            self.assert_shows(self.chart("lr"), step, ["lr"])
            self.assert_shows(self.chart("accuracy"), step, ["eval/accuracy"])
        self.point(self.one("h1"), 5, 5)
        self.assert_shows(chart, 2000, ["loss", "eval/loss"])
        self.assertEqual(self.all(".crosshair"), [])

    def test_the_dot_lies_on_its_curve(self):
        chart = self.chart("lr")
        self.point(self.one("svg", chart), self.x_of(chart, "1,000"), 60)
        dot = self.one("svg g:last-child circle", chart)
        x, y = (float(dot.get_attribute(c)) for c in ("cx", "cy"))
        path = self.one("path.curve", chart).get_attribute("d")
        points = [tuple(map(float, p.split()))
                  for p in path.replace("M", "L").split("L")[1:]]
        self.assertEqual(len(points), 200)
        self.assertAlmostEqual(points[99][0], x, delta=0.1)
        self.assertAlmostEqual(points[99][1], y, delta=0.1)
        # Higher values stand higher, later steps further right.
        self.assertLess(points[20][1], points[150][1])
        self.assertLess(points[20][0], points[150][0])

    def test_what_is_not_finite_breaks_the_curve(self):
        chart = self.chart("loss")
        path = self.one("path.curve", chart).get_attribute("d")
        self.assertEqual(path.count("M"), 2)
        self.assertNotIn("NaN", path)
        self.assertEqual(len(self.all(".odd", chart)), 2)
        svg = self.one("svg", chart)
        svg.send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * 69)
        self.assert_shows(chart, 700, ["loss", "eval/loss"])
        svg.send_keys(Keys.ARROW_RIGHT)
        self.assert_shows(chart, 710, ["loss", "eval/loss"])

    def test_drag_zooms_and_the_button_resets(self):
        chart = self.chart("loss")
        whole = self.one("path.curve", chart).get_attribute("d")
        reset = self.one("#reset")
        self.assertEqual(self.range(), "Steps 10 to 2,000")
        self.assertFalse(reset.is_enabled())
        self.drag(chart, "400", "800")
        words = self.range().split()
        self.assertAlmostEqual(int(words[1]), 400, delta=3)
        self.assertAlmostEqual(int(words[3]), 800, delta=3)
        zoomed = self.one("path.curve", chart).get_attribute("d")
        self.assertNotEqual(zoomed, whole)
        self.assertTrue(self.x_of(self.chart("lr"), "500"))
        reset.click()
        self.assertEqual(self.range(), "Steps 10 to 2,000")
        self.assertEqual(self.one("path.curve", chart).get_attribute("d"),
                         whole)
        self.assertFalse(reset.is_enabled())

    def test_dragging_backwards_zooms_and_a_double_click_resets(self):
        chart = self.chart("loss")
        self.drag(chart, "800", "400")
        self.assertAlmostEqual(int(self.range().split()[1]), 400, delta=3)
        ActionChains(self.driver).double_click(self.one("svg", chart)).perform()
        self.assertEqual(self.range(), "Steps 10 to 2,000")

    def test_the_wheel_zooms_with_ctrl_alone(self):
        chart = self.chart("loss")
        wheel = ("arguments[0].dispatchEvent(new WheelEvent('wheel', {"
                 "bubbles: true, cancelable: true, deltaY: -100,"
                 "ctrlKey: arguments[1], clientX: 600}))")
        svg = self.one("svg", chart)
        self.run_js(wheel, svg, False)
        self.assertEqual(self.range(), "Steps 10 to 2,000")
        self.run_js(wheel, svg, True)
        words = self.range().replace(",", "").split()
        self.assertAlmostEqual(int(words[3]) - int(words[1]), 0.8 * 1990,
                               delta=2)

    def test_keys_step_and_zoom(self):
        chart = self.chart("grad_norm")
        svg = self.one("svg", chart)
        svg.send_keys(Keys.ARROW_LEFT)
        self.assert_shows(chart, 1990, ["grad_norm"])
        spoken = self.texts("[aria-live]", chart)[0]
        self.assertTrue(spoken.startswith("step 1,990: grad_norm 0."), spoken)
        svg.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_RIGHT)
        self.assert_shows(chart, 1980, ["grad_norm"])
        svg.send_keys(Keys.HOME)
        self.assert_shows(chart, 10, ["grad_norm"])
        svg.send_keys(Keys.ARROW_LEFT)
        self.assert_shows(chart, 10, ["grad_norm"])
        svg.send_keys("+")
        self.assertEqual(self.range(), "Steps 10 to 1,005")
        svg.send_keys(Keys.END)
        self.assert_shows(chart, 1000, ["grad_norm"])
        svg.send_keys("-")
        self.assertEqual(self.range(), "Steps 10 to 1,010")
        svg.send_keys("0")
        self.assertEqual(self.range(), "Steps 10 to 2,000")
        svg.send_keys(*["+"] * 30)
        words = self.range().replace(",", "").split()
        self.assertLessEqual(int(words[3]) - int(words[1]), 1)
        svg.send_keys(Keys.ESCAPE)
        self.assertEqual(self.range(), "Steps 10 to 2,000")

    def test_a_logarithmic_axis(self):
        chart = self.chart("loss")
        path = self.one("path.curve", chart)
        linear = path.get_attribute("d")
        self.assertIn("0", self.texts("svg text", chart))
        button = self.one("button", chart)
        button.click()
        self.assertEqual(button.get_attribute("aria-pressed"), "true")
        curve = self.one("path.curve", chart).get_attribute("d")
        self.assertNotEqual(curve, linear)
        self.assertNotIn("NaN", curve)
        ticks = self.texts("svg text", chart)
        self.assertNotIn("0", ticks)
        self.assertIn("0.1", ticks)
        # exp falls in a straight line: equal steps fall equally.
        points = [float(p.split()[1])
                  for p in curve.replace("M", "L").split("L")[1:]]
        self.assertAlmostEqual((points[30] - points[0]) /
                               (points[60] - points[30]), 1, delta=0.2)
        self.one("svg", chart).send_keys("l")
        self.assertEqual(self.one("path.curve", chart).get_attribute("d"),
                         linear)
        # Where nothing is negative only.
        signs = self.chart(HOSTILE)
        self.one("button", signs).click()
        self.assertNotIn("NaN",
                         self.one("path.curve", signs).get_attribute("d"))

    # Attention.

    def layers(self):
        return {self.texts("h3", block)[0]: block
                for block in self.all(".layer")}

    def test_every_layer_and_head_has_its_map(self):
        layers = self.layers()
        self.assertEqual(list(layers), ["encoder.0.self", "decoder.0.cross"])
        for layer, heads in [("encoder.0.self", 2), ("decoder.0.cross", 4)]:
            canvases = self.all("canvas", layers[layer])
            self.assertEqual(len(canvases), heads)
            images = {self.run_js("return arguments[0].toDataURL()", c)
                      for c in canvases}
            self.assertEqual(len(images), heads)

    def point_at_cell(self, block, head, q, k):
        """Points at a cell; where it stands is read off the marked first."""
        self.point(self.one("h1"), 5, 5)
        self.one(".heads", block).send_keys(Keys.ARROW_UP)
        cell = self.all(".cell", block)[head]
        left, top, size = self.run_js(
            "const s = arguments[0].style;"
            "return [s.left, s.top, s.width].map(parseFloat)", cell)
        size += 1
        self.point(self.all(".map", block)[head], left + (k + 0.5) * size,
                   top + (q + 0.5) * size)

    def test_a_hover_shows_the_weight_in_every_head(self):
        block = self.layers()["decoder.0.cross"]
        symbols, words = ["<s>", "1", "=", "1"], ["one", "is", "one"]
        for head, q, k in [(0, 0, 0), (3, 2, 1), (1, 3, 2)]:
            self.point_at_cell(block, head, q, k)
            self.assertEqual(self.texts("output", block),
                             [f"{symbols[q]} \u2192 {words[k]}"])
            shown = [number(t) for t in self.texts("figcaption b", block)]
            self.assertEqual(len(shown), 4)
            for h, value in enumerate(shown):
                self.assertAlmostEqual(value, weight(h, q, k, 4, 3),
                                       delta=1e-4)
        self.point(self.one("h1"), 5, 5)
        self.assertEqual(set(self.texts("figcaption b", block)), {""})
        block = self.layers()["encoder.0.self"]
        self.point_at_cell(block, 1, 0, 2)
        self.assertEqual(self.texts("figcaption b", block)[0], "NaN")

    def test_a_cell_is_as_dark_as_its_weight(self):
        block = self.layers()["decoder.0.cross"]
        self.one(".heads", block).send_keys(Keys.ARROW_UP)
        reds = self.run_js(
            "const s = arguments[0].querySelectorAll('.cell')[3].style;"
            "const [x, y, w] = [s.left, s.top, s.width].map(parseFloat);"
            "const size = w + 1, canvas = arguments[0].querySelectorAll("
            "    'canvas')[3];"
            "const image = canvas.getContext('2d').getImageData("
            "    x, y, 3 * size, 4 * size).data;"
            "return [0, 1, 2, 3].flatMap((q) => [0, 1, 2].map((k) =>"
            "    image[4 * ((q * size + 2) * 3 * size + k * size + 2)]))",
            block)
        weights = [weight(3, q, k, 4, 3) for q in range(4) for k in range(3)]
        for red, w in zip(reds, weights):
            darker = sum(r < red for r in reds)
            self.assertEqual(darker, sum(v > w + 1e-9 for v in weights), w)

    def test_the_picker_changes_the_maps(self):
        picker = Select(self.one("#sentence"))
        self.assertEqual([o.get_property("textContent")
                          for o in picker.options],
                         ["one is one", HOSTILE, "a long one"])
        before = self.run_js(
            "return document.querySelector('.map canvas').toDataURL()")
        picker.select_by_index(2)
        self.assertEqual(list(self.layers()), ["encoder.0.self"])
        self.assertEqual(len(self.all(".map")), 8)
        after = self.run_js(
            "return document.querySelector('.map canvas').toDataURL()")
        self.assertNotEqual(before, after)
        picker.select_by_index(0)
        self.assertEqual(before, self.run_js(
            "return document.querySelector('.map canvas').toDataURL()"))

    def test_arrow_keys_walk_over_the_cells(self):
        block = self.layers()["decoder.0.cross"]
        grid = self.one(".heads", block)
        walk = [(Keys.ARROW_DOWN, 0, 0), (Keys.ARROW_DOWN, 1, 0),
                (Keys.ARROW_RIGHT, 1, 1), (Keys.END, 1, 2),
                (Keys.ARROW_RIGHT, 1, 2), (Keys.ARROW_UP, 0, 2),
                (Keys.HOME, 0, 0), (Keys.ARROW_LEFT, 0, 0)]
        for key, q, k in walk:
            grid.send_keys(key)
            for h, text in enumerate(self.texts("figcaption b", block)):
                self.assertAlmostEqual(number(text), weight(h, q, k, 4, 3),
                                       delta=1e-4)
        spoken = self.texts("[aria-live]", block)[0]
        self.assertTrue(spoken.startswith("<s> \u2192 one: head 1 0."), spoken)

    # The tables.

    def column(self, i):
        return [row[i] for row in (
            self.texts("th, td", row)
            for row in self.all("#parameters tbody tr"))]

    def test_parameters_sort_and_add_up(self):
        names = self.column(0)
        self.assertEqual(len(names), 14)
        self.assertEqual(names[0], "encoder.0.self.in_proj_weight")
        counts = [number(t) for t in self.column(3)]
        total = self.texts("#parameters tfoot td")
        self.assertEqual(total[0], "14 tensors")
        self.assertEqual(number(total[3]), sum(counts))
        buttons = self.all("#parameters thead button")
        buttons[3].click()
        self.assertEqual([number(t) for t in self.column(3)], sorted(counts))
        buttons[3].send_keys(Keys.ENTER)
        self.assertEqual([number(t) for t in self.column(3)],
                         sorted(counts, reverse=True))
        heads = self.all("#parameters thead th")
        self.assertEqual([h.get_attribute("aria-sort") for h in heads],
                         ["none", "none", "none", "descending", "none"])
        buttons[0].click()
        self.assertEqual(self.column(0)[1:3], ["embedding.weight",
                                               "encoder.0.mlp.up.weight"])
        buttons[4].click()
        norms = [number(t) for t in self.column(4)]
        self.assertTrue(math.isnan(norms[-1]))
        self.assertEqual(norms[:-1], sorted(norms[:-1]))
        buttons[4].click()
        buttons[4].click()
        self.assertEqual(self.column(0), names)

    def test_wrong_samples_are_marked(self):
        rows_shown = self.all("#samples tbody tr")
        verdicts = [self.texts("td", row)[3] for row in rows_shown]
        self.assertEqual(verdicts,
                         ["\u2713 right", "\u2717 wrong", "\u2713 right", ""])
        self.assertEqual([r.get_attribute("class") for r in rows_shown],
                         ["", "wrong", "", ""])
        self.assertIn("2 of 3 right", self.one("#samples").text)
        self.one("#wrong-only").click()
        self.assertEqual(self.texts("#samples tbody tr td"),
                         ["two is two", "2 = 3", "2 = 2", "\u2717 wrong"])
        self.one("#wrong-only").click()
        self.assertEqual(len(self.all("#samples tbody tr")), 4)

    def test_the_configuration_is_flat(self):
        cells = self.texts("#config th, #config td")
        shown = dict(zip(cells[::2], cells[1::2]))
        self.assertEqual(shown["model.d_model"], "64")
        self.assertEqual(shown["model.encoder.layers"], "6")
        self.assertEqual(shown["betas"], "[0.9,0.98]")
        self.assertEqual(shown["note"], "</script><b id=\"hostile\">")

    def test_the_summary(self):
        shown = dict(zip(self.texts("#summary dt"), self.texts("#summary dd")))
        self.assertEqual(shown["Last step"], "2,000")
        self.assertAlmostEqual(number(shown["Last loss"]), rows("loss")[2000],
                               delta=1e-4)
        self.assertAlmostEqual(number(shown["Best eval/loss"]),
                               min(rows("eval/loss").values()), delta=1e-4)

    # The page.

    def test_text_is_nothing_but_text(self):
        self.assertEqual(self.all("#hostile"), [])
        self.assertEqual(self.driver.title, "Sample run " + HOSTILE)
        self.assertEqual(self.texts("h1"), ["Sample run " + HOSTILE])
        self.assertEqual(self.column(0)[-1], HOSTILE)
        self.assertEqual(self.texts("#samples tbody tr:nth-child(3) td")[:3],
                         [HOSTILE] * 3)
        Select(self.one("#sentence")).select_by_index(1)
        block = self.layers()["decoder.0.cross"]
        self.point_at_cell(block, 0, 0, 0)
        self.assertEqual(self.texts("output", block),
                         [f"{HOSTILE} \u2192 {HOSTILE}".replace("<b ",
                                                                "<b\u2423")])
        self.assertEqual(self.all("#hostile"), [])

    def test_a_phone_needs_no_sideways_scrolling(self):
        self.open(360)
        for sentence in range(3):
            Select(self.one("#sentence")).select_by_index(sentence)
            self.settle()
            self.assertLessEqual(self.run_js(
                "return document.documentElement.scrollWidth"), 360)
            self.assertEqual(self.run_js(
                "return [...document.querySelectorAll('.chart, .layer,"
                " .table, .head')].filter((e) => e.scrollWidth > e.clientWidth"
                " + 1 || e.getBoundingClientRect().right > 360).length"), 0)
        svg = self.one("svg", self.chart("loss"))
        self.assertGreater(svg.size["width"], 280)

    def test_it_follows_the_window(self):
        chart = self.chart("loss")
        before = self.x_of(chart, "1,000")
        self.cdp("Emulation.setDeviceMetricsOverride", width=700, height=800,
                 deviceScaleFactor=1, mobile=False)
        self.settle()
        self.assertLess(self.x_of(chart, "1,000"), before - 100)

    def test_dark_is_dark(self):
        colors = ("const s = getComputedStyle(document.body);"
                  "return [s.backgroundColor, s.color].map((c) =>"
                  "    c.match(/\\d+/g).slice(0, 3).reduce("
                  "        (sum, x) => sum + Number(x), 0))")
        image = "return document.querySelector('.map canvas').toDataURL()"
        paper, ink = self.run_js(colors)
        light = self.run_js(image)
        self.assertGreater(paper, 600)
        self.assertLess(ink, 200)
        self.media("dark")
        self.settle()
        paper, ink = self.run_js(colors)
        self.assertLess(paper, 200)
        self.assertGreater(ink, 600)
        self.assertNotEqual(self.run_js(image), light)

    def test_tab_reaches_everything_and_the_focus_shows(self):
        reached = []
        body = self.one("body")
        body.send_keys(Keys.TAB)
        for _ in range(60):
            name, outline = self.run_js(
                "const e = document.activeElement;"
                "return [e.id || e.getAttribute('class') || e.localName,"
                "        getComputedStyle(e).outlineStyle]")
            if name == "body":
                break
            reached.append(name)
            self.assertEqual(outline, "solid", name)
            ActionChains(self.driver).send_keys(Keys.TAB).perform()
        self.assertEqual(reached.count("a"), 5)
        self.assertEqual(reached.count("svg"), 7)
        self.assertEqual(reached.count("heads"), 2)
        self.assertEqual(reached.count("table"), 3)
        for name in ["sentence", "wrong-only"]:
            self.assertIn(name, reached)

    def test_an_empty_report_is_a_page_too(self):
        self.open(360, "empty.html")
        self.assertEqual(self.texts("h1"), ["Empty"])
        self.assertFalse(any(s.is_displayed() for s in self.all("section")))


result = unittest.main(exit=False, verbosity=1).result
failed = len({str(test) for test, _ in result.failures + result.errors})
print(f"{max(result.testsRun - failed, 0)} passed, {failed} failed")
sys.exit(failed > 0 or result.testsRun == 0)
