#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs stay themselves, part one: coreutils, text tools, shells, archives, terminals."""

import re

import identity
import cairn_test as t

t.need("zstd", "xz", "tmux", "rsync", "curl", "awk", "bc")


def fill(place):
    """A tree of small files, and one text with many lines."""
    for i in range(200 if t.IS_LONG else 60):
        directory = place / "tree" / f"d{i % 10}" / f"e{i % 3}"
        directory.mkdir(parents=True, exist_ok=True)
        line = f"stone {i} is {i * 7919 % 4810} high\n"
        (directory / f"stone{i}.txt").write_text(line * (i % 9 + 1))
    (place / "tree/link").symlink_to("d1")
    with open(place / "lines.txt", "w", encoding="utf-8") as file:
        for i in range(30000 if t.IS_LONG else 10000):
            file.write(f"{i * 2654435761 % 1000003}\tplace{i % 97}\tmoß {i}\n")


COMMANDS = {
    "sort": ["sort", "-k2,2", "-k1,1nr", "lines.txt"],
    "sort parallel": ["sort", "--parallel=2", "-S", "1M", "-o", "sorted", "lines.txt"],
    "ls": ["ls", "-R", "-F", "tree"],
    "find": ["find", "tree", "-name", "*1*.txt", "-size", "-2", "-printf", "%p %s %M\n"],
    "sha256sum": ["sha256sum", "lines.txt", "tree/d1/e1/stone1.txt", "none"],
    "wc": ["wc", "lines.txt"],
    "cut": ["cut", "-f", "1,3", "lines.txt"],
    "grep": ["grep", "-rnE", "stone (1|22)[0-9] ", "tree"],
    "diff": ["diff", "-ru", "tree/d1", "tree/d2"],
    "awk": ["awk", "{ n[$2] += $1 } END { for (k in n) print k, n[k] | \"sort\" }", "lines.txt"],
    "sed": ["sed", "-E", "-i.old", "s/place([0-9]+)/stone-\\1/;3~7d", "lines.txt"],
    "curl": ["curl", "-s", f"file://{identity.PLACE}/lines.txt"],
    "rsync": ["rsync", "-a", "--itemize-changes", "tree/", "copy/"],
    "cp": ["cp", "-a", "tree", "copy"],
    "rm": ["rm", "-r", "tree/d3", "tree/none"],
}
STATUS = {"sha256sum": 1, "diff": 1, "rm": 1}

SCRIPTS = {
    "tr, uniq, join, paste": """
        cut -f2 lines.txt | tr a-z A-Z | sort | uniq -c | tee counts | wc -l
        join -j 2 <(sort -k2 lines.txt | head -50) <(sort -k2 counts | head -50)
        seq 1000 | paste - - - - | shuf --random-source=lines.txt | head -5
        split -l 5000 lines.txt part. && cat part.* | cmp - lines.txt
        od -c lines.txt | tail -3; base64 lines.txt | md5sum
        printf '%s\\n' {1..2000} | xargs -n 50 echo | wc
    """,
    "bash": """
        total=0; declare -A seen
        for i in $(seq 60); do
            word=$(echo "stone $i" | tr a-z n-za-m)
            seen[$word]=$(( i * i )); total=$((total + ${#word}))
        done
        echo "$total ${#seen[@]} ${seen[fgbar 7]}"; trap 'echo trapped; exit 0' TERM
        (echo inner $BASH_SUBSHELL; exit 3) || echo "status $?"
        read -r first < <(head -1 lines.txt); echo "$first"; sleep 0.1 & wait $!
        kill -TERM $$; sleep 5
    """,
    "dash": """
        dash -c 'for f in tree/*/*/*.txt; do read -r a b c < "$f"; n=$((n + b)); done; echo $n'
    """,
    "bash signals": """
        set +e; bash -c 'kill -SEGV $$'; echo $?; bash -c 'kill -9 $$'; echo $?
        timeout 0.2 sleep 10; echo $?; false; echo $?; bash -c 'exit 200'; echo $?
        none-such; echo $?
        env -i /usr/bin/env; env -i A=1 sh -c 'echo $A; /usr/bin/env | grep -v -e ^PWD= -e ^_='
    """,
    "tar, gzip": """
        tar --sort=name --mtime=@1 --owner=0 --group=0 -cf all.tar tree
        gzip -9n <all.tar >all.tar.gz
        mkdir out && tar -xzf all.tar.gz -C out && diff -r tree out/tree
        tar -tvf all.tar | sha256sum
    """,
    "xz": "xz -T2 -k lines.txt; xz -dc lines.txt.xz | cmp - lines.txt; xz -l --robot lines.txt.xz",
    "zstd": "zstd -q -T2 -12 -k lines.txt; zstd -dcq lines.txt.zst | cmp - lines.txt; zstd -tq *.zst",
    "bc": "echo 'scale=300; 4*a(1); 2^2000' | bc -l",
    "file descriptors": "exec 7>seven; echo to seven >&7; ls /proc/self/fd | wc -l; ls -l /proc/self/fd/7"
                        " | sed 's/.* -> //'",
    "terminal": """
        seen() { tmux -S socket capture-pane -p | grep -c "$1" || true; }
        tmux -S socket -f /dev/null new-session -d -x 60 -y 12 'seq -f "line %g" 3; cat'
        for i in $(seq 200); do test $(seen 'line 3') = 1 && break; sleep 0.05; done
        tmux -S socket send-keys 'typed' Enter
        for i in $(seq 200); do test $(seen typed) = 2 && break; sleep 0.05; done
        tmux -S socket capture-pane -p; tmux -S socket kill-server
    """,
}


def without_pids(text):
    """As bash says it: `bash: line 2:  3472 Killed`."""
    return re.sub(rb"(line \d+:) +\d+ ", rb"\1 PID ", text)


for name, argv in COMMANDS.items():
    identity.compare(name, argv, prepare=fill, status=STATUS.get(name, 0))
for name, script in SCRIPTS.items():
    identity.shell(name, script, prepare=fill, ignored=("socket",), see=without_pids)
t.finish()
