#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What NumPy does in the tests of arrays.

The k-th element of a test array, in the order of its indices, is value(dtype, k); the C++ side computes the same.

usage: numpy_side.py save FOLDER          saves DTYPE_RANK_ORDER.npy for many types, ranks and orders, and odd ones
       numpy_side.py check FILE...        each file must hold a test array; prints its dtype, shape and order
       numpy_side.py add FILE NUMBER      adds a number to all elements of a file, in place
       numpy_side.py hold NAME COUNT      makes a SharedMemory of float64 0, 1, 2, ..., says so, waits for SIGUSR1,
                                          prints the elements and removes it
       numpy_side.py attach NAME COUNT    opens Drover's block as SharedMemory, prints its float64 and doubles them
       numpy_side.py record FILE          prints a file of struct {double time; int level;}, after adding 1 to each level
"""
import signal
import sys
from multiprocessing import shared_memory

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])  # before NumPy starts threads, see hold

try:
    import numpy as np
except ModuleNotFoundError:
    sys.exit("the tests of arrays need NumPy for /usr/bin/python3: install the package python3-numpy")

DTYPES = ["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8", "<f16", "<c8", "<c16", "|S1"]
DATA_OFFSET = 4096  # of the data in a named block of Drover's


def expected(dtype, shape):
    """A test array, in C order."""
    k = np.arange(int(np.prod(shape, dtype=int)))
    kind = np.dtype(dtype).kind
    if kind == "b":
        values = k % 3 == 0
    elif kind == "S":
        values = np.array([bytes([65 + i % 26]) for i in k], dtype="S1")
    elif kind == "c":
        values = k % 100 + 1j * (k % 7)
    else:
        values = k % 100
    return values.astype(dtype).reshape(shape)


def save(folder):
    for dtype in DTYPES:
        for rank in range(9):
            for order in "CF":
                array = np.array(expected(dtype, (3, 2, 4, 1, 2, 3, 2, 2)[:rank]), order=order)
                np.save(f"{folder}/{dtype[1:]}_{rank}_{order}.npy", array)
    np.save(f"{folder}/big_endian.npy", np.zeros(3, ">f8"))
    np.save(f"{folder}/object.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    np.save(f"{folder}/structured.npy", np.zeros(3, [("a", "<f8"), ("b", "<i4")]))
    np.save(f"{folder}/half.npy", np.zeros(3, "<f2"))
    np.save(f"{folder}/time.npy", np.zeros(3, "<M8[ns]"))
    np.save(f"{folder}/empty.npy", np.zeros((0, 5)))
    for version in (1, 2, 3):
        with open(f"{folder}/version_{version}.npy", "wb") as file:
            np.lib.format.write_array(file, expected("<f8", (3, 4)), version=(version, 0))


def check(*paths):
    for path in paths:
        array = np.load(path, mmap_mode="r")
        if not np.array_equal(array, expected(array.dtype.str, array.shape)):
            sys.exit(f"{path}: {array.dtype.str} {array.shape} holds {array!r}")
        order = "C" if array.flags.c_contiguous else "F"
        print(path, array.dtype.str, array.shape, order)


def add(path, number):
    array = np.load(path, mmap_mode="r+")
    array += float(number)
    array.flush()


def hold(name, count):
    memory = shared_memory.SharedMemory(name, create=True, size=8 * int(count))
    array = np.ndarray(int(count), buffer=memory.buf)
    array[:] = np.arange(int(count))
    print("ready", flush=True)
    signal.sigwait([signal.SIGUSR1])
    print(array.tolist())
    del array
    memory.close()
    memory.unlink()


def attach(name, count):
    memory = shared_memory.SharedMemory(name)
    array = np.ndarray(int(count), buffer=memory.buf, offset=DATA_OFFSET)
    print(array.tolist())
    array *= 2
    del array
    memory.close()


def record(path):
    array = np.load(path, mmap_mode="r+").view([("time", "<f8"), ("level", "<i4"), ("pad", "V4")])
    array["level"] += 1
    print([(float(t), int(n)) for t, n in zip(array["time"], array["level"])])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
