#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=php changes nothing: a PHP program has the same output, status, descriptors, masks of signals,
directory, environment and options as without cairn, also where it makes code, collects, forks and is interrupted by
signals; and a program without PHP is as it was."""

import shutil

import cairn_test as t

LOOK = r"""<?php
class Node { public $next, $data; function __destruct() { $this->data = null; } }

function generate($count) { for ($i = 0; $i < $count; $i++) yield str_repeat("x", 3000 + $i % 7); }

function work($i) {
    foreach (generate(3) as $text) { gzip($text); }
    $node = new Node; $node->next = $node; $node->data = [$i, md5("$i")];
    eval("function made_" . getmypid() . "_$i() { return array_map(fn(\$x) => \$x . 'y', ['a']); }");
    ("made_" . getmypid() . "_$i")();
    try { throw new Exception("caught", $i); } catch (Exception $error) { $error->getTraceAsString(); }
    $fiber = new Fiber(function () use ($i) { Fiber::suspend(str_repeat("z", $i)); });
    $fiber->start();
    if ($i % 2) $fiber->resume();
}

function gzip($text) {
    $document = class_exists("DOMDocument") ? new DOMDocument : null;
    $document?->loadXML("<a>" . $text . "</a>");
    return preg_replace_callback('/x+/', fn($match) => strlen($match[0]), $text);
}

if (function_exists("pcntl_signal")) {
    pcntl_async_signals(true);
    pcntl_signal(SIGUSR1, function () { static $count = 0; $kept = str_repeat("s", 5000); $count++; });
}
for ($i = 0; $i < 100; $i++) {
    work($i);
    if ($i % 10 == 0 && function_exists("posix_kill")) posix_kill(getmypid(), SIGUSR1);
    if ($i % 50 == 0) gc_collect_cycles();
}
if (function_exists("pcntl_fork")) {
    $child = pcntl_fork();
    if (!$child) { for ($i = 100; $i < 150; $i++) work($i); exit(3); }
    pcntl_waitpid($child, $status);
    echo pcntl_wexitstatus($status), "\n";
}
$lines = explode("\n", file_get_contents("/proc/thread-self/status"));
echo implode("\n", preg_grep('/^(Sig[^Q]|Shd)/', $lines)), "\n";
foreach (scandir("/proc/self/fd") as $one) {
    $to = @readlink("/proc/self/fd/$one");
    if ($to && !preg_match('/^(pipe|socket|anon_inode|.proc)|ZendSem/', $to)) $files[] = $to;
}
sort($files);
echo implode(",", $files), "\n", getcwd(), implode(",", $argv), "\n";
$names = preg_grep('/^(CAIRN_|LD_PRELOAD$|_$)/', array_keys(getenv()), PREG_GREP_INVERT);
sort($names);
echo implode(",", $names), "\n";
(function () { exit(7); })();
"""
OPTION = ["--frames=php"]
shell = ["sh", "-c", "exec 7</dev/null; ls /proc/self/fd | wc -l; ulimit -a; trap; exit 3"]
t.record(shell, options=OPTION)[0].check_like("no PHP", t.run(shell))

php = shutil.which("php")
if php:
    program = f"{t.fresh_path('look')}.php"
    with open(program, "w", encoding="utf-8") as source:
        source.write(LOOK)
    jit = ["-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=32M", "-d", "opcache.jit=tracing"]
    for mode in ([], jit, ["-d", "memory_limit=64M"]):
        for env in ({}, {"USE_ZEND_ALLOC": "0"}):
            argv = [php, *mode, program]
            plain = t.run(argv, env=env)
            t.check_equal(f"{mode}: plain", plain.status, 7)
            result, recording = t.record(argv, options=OPTION, env=env)
            result.check_like(f"{mode}: recorded", plain)
            found = t.run_cairn("report", "--view", "tree", "--print", recording).out.decode()
            t.check("stacks have its frames" not in t.run_cairn("info", recording).out.decode() or "work" in found,
                    f"{mode}: stacks have frames of PHP")
else:
    t.skip_part("php is not installed")
t.finish()
