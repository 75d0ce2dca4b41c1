# SPDX-License-Identifier: Apache-2.0
echo 'rows = [[str(i) for i in range(9)] for _ in range(99)]' >script.py
cat >fill.py <<'END'
class K:
    def m(self):
        return leaf()
def leaf():
    return [bytes(200) for _ in range(3000)]
kept = [K().m() for _ in range(3)]
END
# one that works on once it is recorded
cat >works.py <<'END'
import time
kept = []
while "libcairn" not in open("/proc/self/maps").read():
    time.sleep(0.02)
for i in range(30):
    kept.append(bytes(5000))
    time.sleep(0.01)
END
python3 works.py &
DOC_PID=$!
# pytest with cairn's package, unpacked
needs pytest && cat >test_x.py <<'END' && PYTHONDONTWRITEBYTECODE=1 python3 - <<'END2' && export PYTHONPATH=$PWD/installed CAIRN_TOOL=$(command -v cairn)
import pytest
kept = []
def grow(n): return [bytearray(1000) for _ in range(n)]


@pytest.mark.limit_memory("1 MB")
def test_large(): grow(3000)
def test_leaks(): kept.extend(grow(100))
END
import os, sys, zipfile
sys.path.insert(0, os.environ["SOURCE_DIR"] + "/bindings/python")
import build_wheel
zipfile.ZipFile(build_wheel.build_wheel(".")).extractall("installed")
END2
# the page's script for pandas, and a project of Django, for the first Python that has them
sed -n '/^import numpy/,/^print(len/p' "$SOURCE_DIR/docs/howto/python.md" >table.py
python3 "$SOURCE_DIR/tests/tools/django_shop.py" . || return
for python in /usr/bin/python3 python3; do
    if $python -c 'import pandas' 2>/dev/null; then
        pandas_for_python() { :; }
        stands 'python3 table.py' "$python table.py"
    fi
    if $python -c 'import django' 2>/dev/null; then
        django_for_python() { :; }
        stands 'python3 manage.py' "$python manage.py"
    fi
done
