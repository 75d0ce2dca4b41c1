# SPDX-License-Identifier: Apache-2.0
echo 'rows = [[str(i) for i in range(9)] for _ in range(99)]' >script.py
cairn run -q --python -o BEFORE python3 script.py && cp BEFORE AFTER
