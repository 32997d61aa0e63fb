"""Writes reference.safetensors with Python's own package.

pip install numpy==2.4.6 safetensors==0.8.0 ml_dtypes==0.6.0
"""

import os

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

floats = [0.0, -0.0, 1.0, -2.5, 0.1, 65504.0, 1e-7, np.inf, -np.inf, np.nan]
tensors = {
    "f16": np.array(floats, np.float16).reshape(2, 5),
    "bf16": np.array(floats, ml_dtypes.bfloat16).reshape(5, 2, 1),
    "f32": np.array(floats, np.float32),
    "f64": np.array(floats, np.float64).reshape(1, 10),
    "i32": np.array([[-1, 2**31 - 1]], np.int32),
    "i64": np.array([-(2**63), 7], np.int64),
    "bool": np.array([True, False, True]),
    "u8": np.array([1, 2, 255], np.uint8),
    "scalar": np.array(3.0, np.float32),
    "empty": np.zeros((0, 3), np.float32),
    "naïve \"name\"\n": np.array([4.0], np.float32),
}
folder = os.path.dirname(os.path.abspath(__file__))
save_file(tensors, os.path.join(folder, "reference.safetensors"),
          metadata={"format": "pt", "note": "tab\tand é"})
