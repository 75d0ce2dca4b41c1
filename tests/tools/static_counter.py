# SPDX-License-Identifier: Apache-2.0
"""Static programs that count what they allocate: the judge of count_preload.c linked in, by the linker's --wrap."""

import functools
import pathlib
import subprocess

import cairn_test as t

WRAPPED = "malloc calloc realloc reallocarray posix_memalign aligned_alloc memalign valloc pvalloc free".split()
LINK = [f"-Wl,--wrap={name}" for name in WRAPPED]


def must(command):
    made = subprocess.run(command, capture_output=True, check=False)
    t.check(made.returncode == 0, f"{' '.join(map(str, command))}: {made.stderr.decode()[-600:]}")
    return made.returncode == 0


@functools.cache
def judge(compiler):
    """The object of the judge for a compiler's libc."""
    path = pathlib.Path(t.fresh_path(f"judge-{pathlib.Path(compiler).name}.o")).absolute()
    must([compiler, "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-fno-builtin", "-DCOUNT_WRAPPED", "-c",
          t.SOURCE / "tests/tools/count_preload.c", "-o", path])
    must(["objcopy", *(f"--redefine-sym={name}=__wrap_{name}" for name in WRAPPED), path])
    return str(path)


MUSL_START = "/usr/lib/x86_64-linux-musl"
# musl-gcc knows no -static-pie
MUSL_PIE = ["-fPIE", "-static", "-nostartfiles", "-Wl,-pie,--no-dynamic-linker,-z,text", f"{MUSL_START}/rcrt1.o", f"{MUSL_START}/crti.o",
            f"{MUSL_START}/crtn.o"]


def build(source, name, *options, compiler="gcc", libc=None, objects=()):
    """A static program with the judge inside; None if it cannot be built."""
    output = str(pathlib.Path(t.fresh_path(name)).absolute())
    if (libc or compiler) == "musl-gcc" and "-static-pie" in options:
        options = [option for option in options if option != "-static-pie"] + MUSL_PIE
    done = must([compiler, "-D_GNU_SOURCE", "-O1", "-g", "-fno-builtin", f"-I{t.SOURCE}", f"-I{t.SOURCE}/include", *options,
                 source, *objects, judge(libc or compiler), "-o", output, *LINK, "-pthread"])
    return output if done else None
