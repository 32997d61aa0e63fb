"""Prints "passed failed skipped": the test cases of one `bazel test`.

Usage: count.py EVENTS STATUS, with the file that --build_event_json_file wrote
and Bazel's exit status. Cases come from the test.xml files that the events
name. What has no case there still counts as one that failed: a target that did
not build, a test that broke before, between or after its cases (a crash, a
time-out, a leak), and a run that failed for any other reason.
"""

import json
import os
import sys
import urllib.parse
import xml.etree.ElementTree as ET


def case_outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("status") == "notrun":
        return "skipped"
    return "passed"


def main(events_path, status):
    count = {"passed": 0, "failed": 0, "skipped": 0}

    def fail(what):
        print("FAILED:", what, file=sys.stderr)
        count["failed"] += 1

    events = []
    if os.path.exists(events_path):
        with open(events_path) as lines:
            events = [json.loads(line) for line in lines]
    for event in events:
        if "completed" in event and not event["completed"].get("success"):
            fail(event["id"]["targetCompleted"]["label"] + " did not build")
        if "testResult" not in event:
            continue
        label = event["id"]["testResult"]["label"]
        result = event["testResult"]
        outcomes = []
        for output in result.get("testActionOutput", []):
            if output["name"] != "test.xml":
                continue
            path = urllib.parse.urlparse(output["uri"]).path
            for case in ET.parse(urllib.parse.unquote(path)).iter("testcase"):
                outcome = case_outcome(case)
                outcomes.append(outcome)
                if outcome == "failed":
                    fail("%s %s.%s" % (label, case.get("classname", ""),
                                       case.get("name")))
                else:
                    count[outcome] += 1
        if "failed" not in outcomes and result["status"] != "PASSED":
            fail("%s: %s" % (label, result["status"]))
        elif not outcomes:
            fail(label + " has no test case")
    if status != 0 and count["failed"] == 0:
        fail("the run itself, with exit status %d" % status)
    print(count["passed"], count["failed"], count["skipped"])


main(sys.argv[1], int(sys.argv[2]))
