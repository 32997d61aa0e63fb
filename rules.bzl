"""Targets made from the files that lie in a folder, so that adding a layer, an
operation, a kernel, a test or an example changes no BUILD file."""

# Code that tests share.
_TESTLIB_SRCS = ["**/*_testlib.cc"]

_TESTLIB_HDRS = ["**/*_testlib.h"]

_FUZZ_SRCS = ["**/*_fuzz.cc"]

_FUZZ_HDRS = ["**/*_fuzz.h"]

_TEST_FILES = (["**/*_test.cc"] + _TESTLIB_SRCS + _TESTLIB_HDRS + _FUZZ_SRCS +
               _FUZZ_HDRS)

def library(name, exclude = [], visibility = ["//visibility:public"], **kwargs):
    """Makes a cc_library of the folder's files, less tests and `exclude`."""
    native.cc_library(
        name = name,
        srcs = native.glob(["**/*.cc"], exclude = _TEST_FILES + exclude),
        hdrs = native.glob(["**/*.h"], exclude = _TEST_FILES + exclude),
        visibility = visibility,
        **kwargs
    )

def programs(deps, srcs = None):
    """Makes a cc_binary of each of `srcs`; returns their names.

    Unless they are named, that is every *.cc which is no test.
    """
    if srcs == None:
        srcs = native.glob(["*.cc"], exclude = _TEST_FILES)
    names = []
    for src in srcs:
        names.append(src[:-len(".cc")])
        native.cc_binary(
            name = names[-1],
            srcs = [src],
            visibility = ["//:__subpackages__"],
            deps = deps,
        )
    return names

def tests(deps, data = []):
    """Makes a cc_test of every *_test.cc, which may read testdata/ and `data`.

    The code that they share becomes `testlib`, which brings testdata/ with it,
    for other folders' tests too.
    """
    native.cc_library(
        name = "testlib",
        testonly = True,
        srcs = native.glob(_TESTLIB_SRCS),
        hdrs = native.glob(_TESTLIB_HDRS),
        data = native.glob(["**/testdata/**"]),
        visibility = ["//:__subpackages__"],
        deps = deps + ["@googletest//:gtest"],
    )
    for src in native.glob(["**/*_test.cc"]):
        native.cc_test(
            name = src[:-len(".cc")],
            srcs = [src],
            data = data,
            deps = [
                ":testlib",
                "@googletest//:gtest_main",
            ],
        )

def fuzzers(deps):
    """Makes a libFuzzer program of every *_fuzz.cc, for --config=fuzz alone."""
    for src in native.glob(_FUZZ_SRCS):
        native.cc_binary(
            name = src[:-len(".cc")],
            testonly = True,
            srcs = [src] + native.glob(_FUZZ_HDRS),
            linkopts = ["-fsanitize=fuzzer"],
            tags = ["manual"],
            deps = deps,
        )
