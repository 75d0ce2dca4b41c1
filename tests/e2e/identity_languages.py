#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs stay themselves, part three: interpreters, databases in a file, cryptography,
pictures."""

import os

import identity
import real_programs
import cairn_test as t

t.need("perl", "node", "jq", "sqlite3", "xmllint", "openssl", "convert", t.PYTHON)
CONVERT = "/usr/bin/convert" if os.path.exists("/usr/bin/convert") else "convert"

PYTHON_SCRIPT = """
import concurrent.futures, ctypes, hashlib, json, multiprocessing, os, queue, re, signal, sqlite3
import subprocess, sys, tempfile, threading, zlib

def work(n):
    return sum(len(str(i)) for i in range(n)), hashlib.sha1(b'x' * n).hexdigest()

if __name__ == '__main__':
    for method in ('fork', 'spawn', 'forkserver'):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(work, range(0, 3000, 300)))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        print(list(pool.map(work, range(0, 3000, 500))))
    jobs = queue.Queue()
    threads = [threading.Thread(target=lambda: jobs.put([n for n in range(5000)])) for _ in range(50)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    print(jobs.qsize(), threading.active_count())
    print(subprocess.run(['sh', '-c', 'cat; echo end >&2; exit 7'], input=b'in', capture_output=True))
    show = [sys.executable, '-c', 'import os; print(sorted(os.environ))']
    print(subprocess.check_output(show, env={}))
    print(sorted(name for name in os.environ if name != 'LD_PRELOAD' and name[:6] != 'CAIRN_'))
    child = os.fork()
    if not child: os.kill(os.getpid(), signal.SIGTERM)
    print(os.waitpid(child, 0)[1], signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGPROF))
    base = sqlite3.connect('base.db')
    base.execute('create table t(a, b)')
    rows = ((i, zlib.compress(b'%d' % i * 50)) for i in range(3000))
    base.executemany('insert into t values(?, ?)', rows)
    base.commit()
    print(base.execute('select count(*), sum(length(b)) from t').fetchone())
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    libc.free(libc.malloc(1000))
    print(len(os.listdir('/proc/self/task')), os.path.basename(tempfile.mkdtemp())[:3])
    print(len(os.listdir('/proc/self/fd')), sys.getswitchinterval(), re.sub('a+', 'b', 'caaat'))
    sys.exit('the end')
"""
PERL_SCRIPT = """
use strict; use threads; use POSIX; use Storable; use Digest::SHA 'sha256_hex'; use IPC::Open3;
sub start { my $n = shift; return threads->create(sub { sha256_hex('x' x ($n * 1000)) }) }
my @results = map { $_->join } map { start($_) } 1..8;
print "@results\\n"; my %h = map { ($_ => [1..$_ % 20]) } 1..5000;
store(\\%h, 'stored'); my $back = retrieve('stored'); print scalar(keys %$back), "\\n";
my $text = join ' ', map { "word$_" } 1..20000;
my $n = () = $text =~ /w(?:or)d(\\d*7\\d*)\\b/g; print "$n\\n";
print `echo inner; exit 3`, $? >> 8, "\\n";
my $pid = fork; if (!$pid) { print "child\\n"; POSIX::_exit(4) }
waitpid $pid, 0; print $? >> 8, "\\n"; local $SIG{ALRM} = sub { print "alarm\\n" }; alarm 1; sleep 3;
print STDERR "the end\\n"; exit 6;
"""
NODE_SCRIPT = """
const { Worker, isMainThread, parentPort } = require('worker_threads');
const { execFileSync, spawnSync } = require('child_process');
const crypto = require('crypto'), zlib = require('zlib'), fs = require('fs');
if (!isMainThread) { const m = {}; for (let i = 0; i < 20000; i++) m['k' + i % 997] = [i, i * 2];
    parentPort.postMessage(Object.keys(m).length); }
else {
    console.log(crypto.createHash('sha256').update(Buffer.alloc(1 << 20, 'walk')).digest('hex'));
    console.log(zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(1 << 20, 'walk'))).length);
    console.log(crypto.pbkdf2Sync('stone', 'salt', 2000, 32, 'sha512').toString('hex'));
    console.log(execFileSync('echo', ['child']).toString(), spawnSync('sh', ['-c', 'exit 9']).status);
    const rows = [...Array(5000).keys()].map(i => ({ i, s: 'x'.repeat(i % 50) }));
    fs.writeFileSync('out.json', JSON.stringify(rows));
    let left = 3;
    for (let i = 0; i < 3; i++) new Worker(__filename).on('message', n => {
        console.log('worker', n); if (!--left) { console.error('the end'); process.exitCode = 5; } });
}
"""
SQL_SCRIPT = """create table stones(id integer primary key, place text, height real);
create virtual table words using fts5(body);
{inserts}
create index by_place on stones(place, height);
update stones set height = height * 1.5 where place like '%7';
delete from stones where id % 13 = 0;
insert into words select place || ' ' || id from stones;
select count(*) from words where body match 'place5';
select place, count(*), round(sum(height) over (order by place), 3)
  from stones group by place limit 20;
select json_group_array(json_object('p', place, 'h', height)) from (select * from stones limit 50);
vacuum; pragma integrity_check; select sqlite_version() is not null; select none from nowhere;
"""
OPENSSL = """
    for hash in sha256 sha512 blake2b512 md5 sha3-256; do openssl dgst -$hash lines.txt; done
    openssl enc -aes-256-cbc -pbkdf2 -S 0011223344556677 -k stone -in lines.txt -out secret
    openssl enc -d -aes-256-cbc -pbkdf2 -S 0011223344556677 -k stone -in secret | cmp - lines.txt
    openssl genrsa -out key.pem 2048 && openssl pkey -in key.pem -pubout -out public.pem
    openssl dgst -sha256 -sign key.pem -out signature lines.txt
    openssl dgst -sha256 -verify public.pem -signature signature lines.txt
    openssl req -x509 -key key.pem -subj /CN=walk -days 9 | openssl x509 -noout -subject
    openssl speed -seconds 1 -bytes 1024 sha256 2>/dev/null | grep -c '^sha256'
"""
IMAGES = f"""
    {CONVERT} -size 300x200 gradient:red-blue -rotate 30 -blur 2x2 -strip one.ppm
    {CONVERT} one.ppm -resize 50% -colors 16 -quality 80 -strip two.jpg
    {CONVERT} one.ppm two.jpg -resize 64x64! -append -depth 8 three.ppm
    {CONVERT} three.ppm -format '%w %h %k' info:
"""


def fill(place):
    (place / "script.py").write_text(PYTHON_SCRIPT)
    (place / "script.pl").write_text(PERL_SCRIPT)
    (place / "script.js").write_text(NODE_SCRIPT)
    inserts = "\n".join(f"insert into stones values({i}, 'place{i % 97}', {i * 31 % 4810}.5);"
                        for i in range(1, 15001))
    (place / "script.sql").write_text(SQL_SCRIPT.format(inserts=f"begin;\n{inserts}\ncommit;"))
    (place / "lines.txt").write_text("".join(f"stone {i * 7919 % 4810}\n" for i in range(50000)))
    for make in (real_programs.xmllint, real_programs.jq):
        before = os.getcwd()
        os.chdir(place)
        make()
        os.chdir(before)


SCRIPTS = {
    "python": ([t.PYTHON, "script.py"], 1),
    "python with malloc": (["env", "PYTHONMALLOC=malloc", t.PYTHON, "script.py"], 1),
    "perl": (["perl", "script.pl"], 6),
    "node": (["node", "script.js"], 5),
    "sqlite3": (["sqlite3", "base.db", ".read script.sql"], 1),
    "xmllint": (["xmllint", "--xpath", "//place[height > 4000]/name", "walk.xml"], 0),
    "xmllint --c14n": (["xmllint", "--c14n", "walk.xml"], 0),
    "xmllint, bad file": (["xmllint", "walk.json"], 1),
    "jq": (["jq", "map(select(.id % 7 == 0)) | group_by(.place) | map([.[0].place, length])",
            "walk.json"], 0),
}
for name, (argv, status) in SCRIPTS.items():
    identity.compare(name, argv, prepare=fill, status=status)
# A key is new each time, and what is made with it.
identity.shell("openssl", OPENSSL, prepare=fill, ignored=("key.pem", "public.pem", "signature"))
identity.shell("images", IMAGES)
t.finish()
