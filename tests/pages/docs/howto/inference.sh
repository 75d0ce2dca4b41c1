# SPDX-License-Identifier: Apache-2.0
# alone
sed -n '/^```python/,/^```/p' "$SOURCE_DIR/docs/howto/inference.md" | grep -v '^```' >serve_model.py || return
/usr/bin/python3 serve_model.py 100000 &
DOC_PID=$! && stands 4242 "$DOC_PID"
until grep -q '^VmRSS:	 *[5-9][0-9]... kB' "/proc/$DOC_PID/status"; do sleep 0.05; done
