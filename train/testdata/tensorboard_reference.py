"""Writes tensorboard_reference.tfevents, which tensorboard_test.cc compares.

TensorBoard's own messages in its own record writer; then its reader reads the
file back. Needs `pip install tensorboard` (made with 2.21.0, numpy 2.4.6). Run
it with `python3 train/testdata/tensorboard_reference.py`. Given the folder of
another run, it prints what TensorBoard reads there instead.
"""

import math
import pathlib
import sys

import numpy as np
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

# Two grey pixels, one above the other: black and white.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000020800000000bceae9fb"
    "0000000c49444154789c636060f80f00010301000889c2ec"
    "0000000049454e44ae426082"
)
# A range of 30 buckets whose limits are doubles without rounding.
VALUES = [-1.0, 0.0, 0.25, 0.25, 2.75, math.nan, math.inf, -0.5]


def summary(**value):
    value = summary_pb2.Summary.Value(**value)
    return {"summary": summary_pb2.Summary(value=[value])}


def histogram(values):
    values = np.array([x for x in values if math.isfinite(x)])
    counts, limits = np.histogram(values, bins=30)
    if len(set(values)) == 1:
        counts, limits = [len(values)], [values[0]] * 2
    if len(values) == 0:
        return summary_pb2.HistogramProto()
    return summary_pb2.HistogramProto(
        min=values.min(),
        max=values.max(),
        num=len(values),
        sum=values.sum(),
        sum_squares=(values * values).sum(),
        bucket_limit=limits[1:],
        bucket=counts,
    )


def events():
    yield 0, {"file_version": "brain.Event:2"}
    scalars = {"loss": 0.1, "zero": 0.0, "nan": math.nan, "inf": -math.inf}
    values = [{"tag": k, "simple_value": v} for k, v in scalars.items()]
    yield 8, {"summary": summary_pb2.Summary(value=values)}
    yield 300, summary(tag="w", histo=histogram(VALUES))
    yield 300, summary(tag="w", histo=histogram([3.0, 3.0]))
    yield 300, summary(tag="w", histo=histogram([math.nan]))
    image = summary_pb2.Summary.Image(
        height=2, width=1, colorspace=1, encoded_image_string=PNG
    )
    yield 1 << 40, summary(tag="attention/layer0", image=image)


def read(path):
    """What TensorBoard's reader finds under a path, by kind and tag."""
    reader = event_accumulator.EventAccumulator(
        str(path), event_accumulator.STORE_EVERYTHING_SIZE_GUIDANCE
    ).Reload()
    get = {
        "scalars": reader.Scalars,
        "histograms": reader.Histograms,
        "images": reader.Images,
    }
    return {
        kind: {tag: events(tag) for tag in reader.Tags()[kind]}
        for kind, events in get.items()
    }


def main():
    if len(sys.argv) > 1:
        for kind, tags in read(sys.argv[1]).items():
            for tag, found in tags.items():
                for event in found:
                    print(kind, tag, event)
        return
    path = pathlib.Path(__file__).with_suffix(".tfevents")
    with open(path, "wb") as file:
        writer = RecordWriter(file)
        for i, (step, content) in enumerate(events()):
            event = event_pb2.Event(
                wall_time=1700000000.25 + i, step=step, **content
            )
            writer.write(event.SerializeToString(deterministic=True))
    found = read(path)
    assert found["scalars"]["loss"][0].value == np.float32(0.1)
    assert math.isnan(found["scalars"]["nan"][0].value)
    assert found["histograms"]["w"][0].histogram_value.num == 6
    assert found["images"]["attention/layer0"][0].encoded_image_string == PNG


main()
