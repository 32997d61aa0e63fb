"""Wengert's files by the real Python packages, and theirs by Wengert.

Usage: interop_test.py FOLDER, the one with the programs `interop` and
`inspect`. Run it by .ci/interop, which provides the packages.
"""

import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import PIL.Image
import safetensors
import safetensors.numpy
import tokenizers
from tensorboard.backend.event_processing import event_accumulator

PROGRAMS = sys.argv[1]

# As in train/interop.cc.
NUMBERS = np.array(
    [0, -0.0, 1, -1.5, 3.141592653589793, 1e-40, 6e-8, 65504, 65520,
     1.0009765, 3e38, -3.4e38, 1e300, 5e-324, np.inf, -np.inf, np.nan,
     1.00390625]).reshape(2, -1)


def to_bfloat16(x):
    """The nearest bfloat16, ties to even, as bits. Not for NaN."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bfloat16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def program(name, *arguments, status=0):
    done = subprocess.run([os.path.join(PROGRAMS, name), *arguments],
                          capture_output=True, text=True)
    if done.returncode != status:
        raise AssertionError(f"{name} ended with {done.returncode}: "
                             f"{done.stdout}{done.stderr}")
    return done.stdout


class Interop(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        program("interop", "write", cls.temporary.name)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def path(self, name):
        return os.path.join(self.temporary.name, name)

    def load(self, name):
        return safetensors.numpy.load_file(self.path(name))

    def raw(self, name):
        with open(self.path(name), "rb") as file:
            return dict(safetensors.deserialize(file.read()))

    def assert_same(self, got, wanted):
        """Equal dtype, shape and bits; any NaN is as good as another."""
        wanted = np.asarray(wanted)
        self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape))
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got) & ~np.isnan(got),
                                      np.signbit(wanted) & ~np.isnan(wanted))

    # ---- Wengert writes, Python reads --------------------------------------

    def test_tensors_of_every_dtype(self):
        tensors = self.load("types.safetensors")
        with np.errstate(over="ignore"):
            f32 = NUMBERS.astype(np.float32)
        wanted = {
            "f64": NUMBERS,
            "f32": f32,
            "i32": np.array([-2**31, 0, 2**31 - 1], np.int32),
            "i64": np.array([[-2**63], [2**53 + 1]], np.int64),
            "bool": np.array([True, False, True]),
            "empty": np.zeros((0, 5), np.float32),
            "scalar": np.array(-7, np.float32),
            "naïve name": np.array(2, np.float32),
        }
        self.assertEqual(set(tensors), set(wanted))
        for name, x in wanted.items():
            with self.subTest(name):
                if x.dtype.kind == "f":
                    self.assert_same(tensors[name], x)
                else:
                    self.assertEqual(tensors[name].dtype, x.dtype)
                    np.testing.assert_array_equal(tensors[name], x)

    def test_arrays(self):
        with np.errstate(over="ignore"):
            f32 = NUMBERS.astype(np.float32)
        wanted = {
            "f64": NUMBERS,
            "f32": f32,
            "i32": np.array([-2**31, 0, 2**31 - 1], np.int32),
            "i64": np.array([[-1], [2**53 + 1]], np.int64),
            "bool": np.array([True, False, True]),
            "empty": np.zeros((0, 5), np.float32),
            "scalar": np.array(-7, np.float32),
            "naïve/name": np.array(2, np.float32),
        }
        for name in ("stored.npz", "deflated.npz"):
            with np.load(self.path(name)) as arrays:
                self.assertEqual(list(arrays), list(wanted))
                for key, x in wanted.items():
                    self.assertEqual((arrays[key].dtype, arrays[key].shape),
                                     (x.dtype, x.shape))
                    np.testing.assert_array_equal(arrays[key], x)
        self.assert_same(np.load(self.path("numbers.npy")), NUMBERS)

    def test_tokenizers(self):
        with open(self.path("ids.json")) as file:
            wanted = json.load(file)
        for name in ("pairs", "characters", "bytes"):
            with self.subTest(name):
                tokenizer = tokenizers.Tokenizer.from_file(
                    self.path(name + ".json"))
                ids = tokenizer.encode(wanted["text"]).ids
                self.assertEqual(ids, wanted[name])
                self.assertEqual(tokenizer.decode(ids), wanted["text"])
        self.assertEqual(tokenizer.encode("<|end|>").ids, [256])

    def test_float16(self):
        with np.errstate(over="ignore"):
            self.assert_same(self.load("f16.safetensors")["f64"],
                             NUMBERS.astype(np.float16))

    def test_bfloat16(self):
        entry = self.raw("bf16.safetensors")["f64"]
        self.assertEqual((entry["dtype"], list(entry["shape"])),
                         ("BF16", list(NUMBERS.shape)))
        bits = np.frombuffer(bytes(entry["data"]), np.uint16)
        numbers = NUMBERS.reshape(-1)
        with np.errstate(over="ignore"):
            wanted = to_bfloat16(numbers)
        nan = np.isnan(numbers)
        np.testing.assert_array_equal(bits[~nan], wanted[~nan])
        self.assertTrue(np.isnan(from_bfloat16(bits[nan])).all())

    def test_metadata(self):
        with safetensors.safe_open(self.path("types.safetensors"),
                                   "np") as file:
            self.assertEqual(file.metadata(),
                             {"who": "Wengert", "text": "ä \"x\"\n"})

    def test_checkpoint(self):
        with open(self.path("expected.json")) as file:
            wanted = json.load(file)
        with safetensors.safe_open(self.path("checkpoint.safetensors"),
                                   "np") as file:
            self.assertEqual(set(file.keys()), set(wanted))
            self.assertIn("layer.weight", wanted)
            self.assertIn("optimizer.m.layer.weight", wanted)
            for name, x in wanted.items():
                self.assert_same(
                    file.get_tensor(name),
                    np.array(x["values"], np.float32).reshape(x["shape"]))
            metadata = file.metadata()
        self.assertEqual(metadata["format"], "pt")
        self.assertEqual(metadata["step"], "3")
        self.assertEqual(json.loads(metadata["config"]), {"lr": 1})
        self.assertEqual(float(metadata["metrics.loss"]), 0.1)

    def events(self):
        events = event_accumulator.EventAccumulator(
            self.temporary.name,
            size_guidance={event_accumulator.SCALARS: 0,
                           event_accumulator.HISTOGRAMS: 0,
                           event_accumulator.IMAGES: 0})
        events.Reload()
        return events

    def test_event_scalars(self):
        events = self.events()
        wanted = {
            "loss": ([10, 20, 30], [3.25, 0.1, np.nan]),
            "eval/loss": ([20, 30], [1e-300, -np.inf]),
            "time/s": ([10, 20, 30], [.5, 1.5, np.inf]),
        }
        self.assertEqual(set(events.Tags()["scalars"]), set(wanted))
        for tag, (steps, values) in wanted.items():
            scalars = events.Scalars(tag)
            self.assertEqual([s.step for s in scalars], steps)
            with np.errstate(under="ignore"):
                np.testing.assert_array_equal(
                    np.array([s.value for s in scalars], np.float32),
                    np.array(values, np.float32))
        self.assertGreater(events.FirstEventTimestamp(), 1.6e9)

    def test_event_histogram(self):
        (event,) = self.events().Histograms("weights")
        h = event.histogram_value
        values = np.array([-1, -1, 0, .5, .5, .5, 2])  # less the NaN
        self.assertEqual(event.step, 30)
        self.assertEqual((h.min, h.max, h.num), (-1, 2, 7))
        self.assertEqual((h.sum, h.sum_squares),
                         (values.sum(), (values**2).sum()))
        counts, edges = np.histogram(values, 30)
        bucket = np.array(h.bucket)
        self.assertEqual(bucket.sum(), 7)
        np.testing.assert_array_equal(bucket[bucket > 0], counts[counts > 0])
        np.testing.assert_allclose(np.array(h.bucket_limit)[-30:], edges[1:],
                                   rtol=0, atol=1e-12)

    def test_event_image(self):
        (event,) = self.events().Images("attention/layer0")
        self.assertEqual((event.step, event.width, event.height), (30, 1, 2))
        with PIL.Image.open(io.BytesIO(event.encoded_image_string)) as image:
            np.testing.assert_array_equal(np.array(image), [[0], [255]])

    def test_metrics_csv(self):
        path = self.path("metrics.csv")
        table = np.genfromtxt(path, delimiter=",", names=True,
                              deletechars="", replace_space=" ")
        self.assertEqual(table.dtype.names,
                         ("step", "loss", "eval/loss", "time/s"))
        np.testing.assert_array_equal(table["step"], [10, 20, 30])
        np.testing.assert_array_equal(table["loss"], [3.25, 0.1, np.nan])
        np.testing.assert_array_equal(table["eval/loss"],
                                      [np.nan, 1e-300, -np.inf])
        np.testing.assert_array_equal(table["time/s"], [.5, 1.5, np.inf])
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(rows[0], {"step": "10", "loss": "3.25",
                                   "eval/loss": "", "time/s": "0.5"})

    def test_metrics_jsonl(self):
        with open(self.path("metrics.jsonl")) as file:
            rows = [json.loads(line) for line in file]
        self.assertEqual(rows, [
            {"step": 10, "loss": 3.25, "time/s": .5},
            {"step": 20, "loss": 0.1, "eval/loss": 1e-300, "time/s": 1.5},
            {"step": 30, "loss": "NaN", "eval/loss": "-Infinity",
             "time/s": "Infinity"},
        ])
        self.assertEqual(float(rows[2]["eval/loss"]), -np.inf)

    # ---- Python writes, Wengert reads --------------------------------------

    def copied(self, tensors, metadata=None):
        """What Wengert loads of them, written again; floats as float64."""
        safetensors.numpy.save_file(tensors, self.path("python"), metadata)
        program("interop", "copy", self.path("python"), self.path("copy"))
        return self.load("copy")

    def test_floats_from_python(self):
        with np.errstate(over="ignore", under="ignore"):
            tensors = {
                "f64": NUMBERS,
                "f32": NUMBERS.astype(np.float32),
                "f16": NUMBERS.astype(np.float16),
                "every.f16": np.arange(2**16, dtype=np.uint16).view(
                    np.float16),
                "empty": np.zeros((3, 0, 2), np.float32),
                "scalar": np.array(0.1, np.float32),
                "one": np.array([0.1], np.float16),
            }
        copy = self.copied(tensors)
        self.assertEqual(set(copy), set(tensors))
        for name, x in tensors.items():
            with self.subTest(name):
                self.assert_same(copy[name], x.astype(np.float64))

    def test_bfloat16_from_python(self):
        bits = np.arange(2**16, dtype=np.uint16)
        spec = safetensors.TensorSpec(
            dtype="bfloat16", shape=[2**8, 2**8], data_ptr=bits.ctypes.data,
            data_len=bits.nbytes)
        data = safetensors.serialize({"every": spec})
        with open(self.path("python"), "wb") as file:
            file.write(data)
        program("interop", "copy", self.path("python"), self.path("copy"))
        self.assert_same(
            self.load("copy")["every"],
            from_bfloat16(bits).astype(np.float64).reshape(2**8, 2**8))

    def test_integers_and_metadata_from_python(self):
        tensors = {
            "i32": np.array([-2**31, 2**31 - 1], np.int32),
            "i64": np.array([-2**63, 2**63 - 1, 2**53 + 1], np.int64),
            "bool": np.array([[True], [False]]),
        }
        metadata = {"format": "np", "ключ": "a\tb\n\"ä\""}
        copy = self.copied(tensors, metadata)
        self.assertEqual(set(copy), set(tensors))
        for name, x in tensors.items():
            self.assertEqual(copy[name].dtype, x.dtype)
            np.testing.assert_array_equal(copy[name], x)
        with safetensors.safe_open(self.path("copy"), "np") as file:
            self.assertEqual(file.metadata(), metadata)

    def test_arrays_from_python(self):
        arrays = {"f8": NUMBERS, "big": np.arange(6, dtype=">f4"),
                  "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
                  "bool": np.array([[True], [False]])}
        np.savez_compressed(self.path("python.npz"), **arrays)
        program("interop", "copy", self.path("python.npz"),
                self.path("copy.npz"))
        with np.load(self.path("copy.npz")) as copy:
            self.assertEqual(list(copy), list(arrays))
            for name, x in arrays.items():
                self.assertEqual(copy[name].dtype, x.dtype.newbyteorder("="))
                np.testing.assert_array_equal(copy[name], x)

    def test_inspect_lists_what_python_wrote(self):
        types = {"F64": np.float64, "F32": np.float32, "F16": np.float16,
                 "I64": np.int64, "I32": np.int32, "I16": np.int16,
                 "I8": np.int8, "U64": np.uint64, "U32": np.uint32,
                 "U16": np.uint16, "U8": np.uint8}
        safetensors.numpy.save_file(
            {"x" + name: np.array([[3], [4]], dtype)
             for name, dtype in types.items()}, self.path("python"))
        lines = program("inspect", self.path("python")).split("\n")
        rows = {line.split()[0]: line.split()[1:] for line in lines
                if line.startswith("x")}
        self.assertEqual(rows, {
            "x" + name: ["[2,", "1]", name, "2", "5", "3.5", "4", "-"]
            for name in types})

    def test_inspect_says_the_same_of_a_file_written_again(self):
        path = self.path("checkpoint.safetensors")
        with safetensors.safe_open(path, "np") as file:
            metadata = file.metadata()
        tensors = self.load("checkpoint.safetensors")
        safetensors.numpy.save_file(tensors, self.path("python"), metadata)
        program("inspect", "--diff", path, self.path("python"))
        tensors["layer.weight"][0, 0] += 1
        safetensors.numpy.save_file(tensors, self.path("python"), metadata)
        program("inspect", "--diff", path, self.path("python"), status=1)


def main():
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(Interop)
    result = unittest.TextTestRunner(verbosity=2).run(tests)
    faulty = {getattr(test, "test_case", test).id()  # of subtests: the test
              for test, _ in result.failures + result.errors}
    passed = result.testsRun - len(faulty) - len(result.skipped)
    summary = f"{max(passed, 0)} passed, {len(faulty)} failed"
    if result.skipped:
        summary += f", {len(result.skipped)} skipped"
    sys.stderr.flush()
    print(summary, flush=True)
    return 0 if result.wasSuccessful() and passed > 0 else 1


sys.exit(main())
