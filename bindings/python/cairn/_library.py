# SPDX-License-Identifier: Apache-2.0
"""The library that records this process (include/cairn/cairn.h), by ctypes; None where there is none."""
import ctypes

API_VERSION = 1
PROCESS, THREAD = 0, 1
_POINTER, _INT, _TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p


class StatsRecord(ctypes.Structure):
    """struct cairn_stats."""
    _fields_ = [("allocations", ctypes.c_uint64), ("frees", ctypes.c_uint64), ("allocated_bytes", ctypes.c_uint64),
                ("live_bytes", ctypes.c_int64), ("peak_bytes", ctypes.c_int64)]


_STATS = ctypes.POINTER(StatsRecord)


def _function(result, *arguments):
    # PYFUNCTYPE keeps the interpreter's lock: the calls are short, and allocate nothing
    return ctypes.PYFUNCTYPE(result, *arguments)


class Table(ctypes.Structure):
    """struct cairn_api_table; later versions append."""
    _fields_ = [
        ("version", ctypes.c_uint32), ("bytes", ctypes.c_uint32),
        ("is_recording", _function(_INT)),
        ("set_enabled", _function(None, _INT, _INT)),
        ("is_enabled", _function(_INT, _INT)),
        ("region_begin", _function(None, _TEXT)),
        ("region_end", _function(_INT, _STATS)),
        ("stats", _function(_INT, _INT, _STATS)),
        ("region_stats", _function(_INT, _TEXT, _STATS)),
        ("report", ctypes.CFUNCTYPE(_INT, _INT, _TEXT, _POINTER, _POINTER)),  # waits for the tool
        ("pool_create", _function(_POINTER, _TEXT)),
        ("pool_alloc", _function(None, _POINTER, _POINTER, ctypes.c_size_t)),
        ("pool_free", _function(_INT, _POINTER, _POINTER)),
        ("pool_destroy", _function(None, _POINTER)),
        ("pool_stats", _function(_INT, _TEXT, _STATS)),
        ("snapshot", _function(_INT, _TEXT, _INT)),
        ("set_thresholds", _function(None, ctypes.c_size_t, ctypes.c_size_t)),
        ("set_rate", _function(_INT, ctypes.c_uint64)),
        ("histogram", _function(_INT, _POINTER)),
        ("context_with", _function(ctypes.c_uint32, ctypes.c_uint32, _TEXT, _TEXT)),
        ("context_current", _function(ctypes.c_uint32)),
        ("context_enter", _function(None, ctypes.c_uint32)),
        ("context_leave", _function(_INT)),
    ]


def _find():
    try:
        ask = ctypes.PyDLL(None).cairn_api
    except (AttributeError, OSError):
        return None
    ask.restype, ask.argtypes = ctypes.POINTER(Table), [ctypes.c_uint32]
    table = ask(API_VERSION)
    if not table or table.contents.bytes < ctypes.sizeof(Table) or not table.contents.is_recording():
        return None
    return table.contents


table = _find()
