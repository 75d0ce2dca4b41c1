<?php
// SPDX-License-Identifier: Apache-2.0
// Five faults beside honest work: faults.php NAME. The line to be found has its name behind it.
$listeners = [];

function read_table($count) {
    $rows = [];
    for ($i = 0; $i < $count; $i++) $rows[] = ["name" => "row " . $i, "value" => $i];
    return $rows;
}

function answer($number) {
    return strlen(str_repeat("x", 700)) + $number;
}

class Session {
    public $state;
    function __construct($number) {
        global $listeners;
        $this->state = str_repeat("s", 2000 + $number % 3); // leak
        if ($number % 7 == 0) $listeners[] = $this;
    }
}

function sessions($count) {
    for ($i = 0; $i < $count; $i++) {
        new Session($i);
        answer($i);
    }
}

class Cache {
    private $pages = [];
    function find($number) {
        if (!isset($this->pages[$number]))
            $this->pages[$number] = str_repeat("page $number", 300); // cache
        return $this->pages[$number];
    }
}

function look_ups($count) {
    $cache = new Cache();
    for ($i = 0; $i < $count; $i++) {
        $cache->find($i);
        answer($i);
    }
}

function sort_table($rows) {
    $keys = str_repeat("k", count($rows) * 40000); // peak
    return strlen($keys);
}

function parse($count) {
    $total = 0;
    for ($i = 0; $i < $count; $i++)
        $total += strlen(substr("the fields of a line that is as long as lines are, $i", 4)); // churn
    return $total;
}

function join_all($count) {
    $texts = [];
    for ($i = 0; $i < $count; $i++) {
        $texts = array_merge($texts, [$i, $i + 1]); // grown
        answer($i);
    }
    return count($texts);
}

$rows = read_table(300);
switch ($argv[1]) {
    case "leak": sessions(20000); break;
    case "cache": look_ups(3000); break;
    case "peak": sort_table($rows); break;
    case "churn": parse(100000); break;
    case "grown": join_all(1500); break;
}
