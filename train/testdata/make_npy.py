"""Makes the .npy and .npz files that NumPy (2.4) writes for npy_test.cc and
npz_test.cc."""
import numpy as np

x = np.arange(24).reshape(2, 3, 4)
arrays = {
    "f4": (x / 8).astype("<f4"),
    "f8": np.array([0.1, -0.0, np.inf, 5e-324]),
    "i4": np.array([[-2**31], [2**31 - 1]], "<i4"),
    "i8": np.array([-2**63, 2**53 + 1]),
    "b1": np.array([True, False, True]),
    "fortran": np.asfortranarray(x.astype("<f8")),
    "big": np.array([[1, -2], [3, 2**31 - 1]], ">i4"),
    "big_fortran": np.asfortranarray(np.array([[1, 2], [3, 4.5]], ">f4")),
    "scalar": np.array(-7, "<f4"),
    "empty": np.zeros((0, 5), "<f4"),
}
np.savez("reference.npz", **arrays)
np.savez_compressed("reference_compressed.npz", **arrays)
for major in (1, 2, 3):
    with open(f"version{major}.npy", "wb") as file:
        np.lib.format.write_array(file, arrays["f4"], version=(major, 0))
