<?php
// SPDX-License-Identifier: Apache-2.0
// Allocates by a native function, in stacks of many kinds, and tells each stack as debug_backtrace
// has it at that moment: php calls.php TOLD CALLS
namespace Told;

[, $told_path, $wanted] = $argv;
$native = \FFI::cdef("void *malloc(size_t size); void free(void *block);");
$told = [];
$calls = 0;

function name_of(array $entry): string {
    if (in_array($entry["function"], ["include", "include_once", "require", "require_once", "eval"])) return "{main}";
    $class = strtok($entry["class"] ?? "", "\0");  // "class@anonymous", NUL, its place
    return ($class ? "$class::" : "") . $entry["function"];
}

// Each entry of debug_backtrace says where the frame further out is.
function tell(): void {
    global $told, $calls;
    $stack = "";
    $place = null;
    foreach (debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS) as $entry) {
        if ($place !== null) $stack .= name_of($entry) . ":$place\t";
        $place = isset($entry["file"]) ? "{$entry['file']}:{$entry['line']}" : ":0";
    }
    $stack .= $place === ":0" ? "" : "{main}:$place";  // PHP itself calls what runs at the end
    $stack = rtrim($stack);
    $told[$stack] = ($told[$stack] ?? 0) + 1;
    $calls++;
}

function leaf(): void {
    global $native;
    $native->free($native->malloc(12345)); tell();
}

abstract class Shape implements \ArrayAccess, \IteratorAggregate, \Countable, \JsonSerializable {
    public function __construct(protected int $depth = 0) { if ($depth > 0) step($depth - 1, 7); }
    public function __get($name) { step($this->depth, 3); return 1; }
    public function __set($name, $value) { leaf(); }
    public function __isset($name) { leaf(); return true; }
    public function __call($name, $arguments) { step($arguments[0] - 1, 5); }
    public static function __callStatic($name, $arguments) { step($arguments[0] - 1, 6); }
    public function __invoke(int $depth) { step($depth - 1, 9); }
    public function __toString(): string { leaf(); return "shape"; }
    public function offsetGet($offset): mixed { step($offset - 1, 4); return 1; }
    public function offsetSet($offset, $value): void { leaf(); }
    public function offsetExists($offset): bool { leaf(); return true; }
    public function offsetUnset($offset): void { leaf(); }
    public function getIterator(): \Iterator { leaf(); return new \ArrayIterator([1]); }
    public function count(): int { leaf(); return 1; }
    public function jsonSerialize(): mixed { leaf(); return 1; }
    public function __destruct() { leaf(); }
    public function bound(int $depth): \Closure { return function () use ($depth) { step($depth - 1, 12); }; }
}

trait Rounded { public function round(int $depth): void { step($depth - 1, 2); } }

final class Circle extends Shape { use Rounded; }

enum Suit: int {
    case Hearts = 1;
    public function area(int $depth): void { step($depth - 1, 13); }
}

function generate(int $depth) {
    yield step($depth - 1, 2);
    leaf();
    yield 1;
    return 2;
}
function delegate(int $depth) { return yield from generate($depth); }
function delegate_twice(int $depth) { yield 0; yield from delegate($depth); leaf(); }

function fails(int $depth): void {
    try {
        throw new \RuntimeException("caught");
    } catch (\RuntimeException $error) {
        step($depth - 1, 8);
    } finally {
        leaf();
    }
}

// A destructor runs while an exception is on its way.
function thrown(int $depth): void {
    $shape = new Circle();
    $more = [$shape];
    if ($depth > -1)
        throw new \LogicException("passes");
}

function in_fiber(int $depth): void {
    $fiber = new \Fiber(function () use ($depth) {
        step($depth - 1, 1);
        \Fiber::suspend();
        leaf();
    });
    $fiber->start();
    leaf();
    $fiber->resume();
}

function usort_of(int $depth): void {
    $list = [2, 1];
    usort($list, function ($a, $b) use ($depth) { step($depth - 2, 4); return $a <=> $b; });
}

function walk_of(): void {
    $nested = [[1]];
    array_walk_recursive($nested, (new class { function walk($one) { leaf(); } })->walk(...));
}

function &by_reference(array &$list) { leaf(); return $list; }

set_error_handler(function ($number, $text) { leaf(); return true; });
spl_autoload_register(function ($class) { leaf(); });
$included = "$told_path.inc.php";
file_put_contents($included, "<?php\n\\Told\\leaf();\n(function () { \\Told\\step(1, 3); })();\nreturn 3;\n");

function step(int $depth, int $seed) {
    global $included;
    if ($depth <= 0) return leaf();
    $shape = new Circle();
    switch ($seed % 24) {
    case 0: return array_map(fn($next) => step($next, $seed + 5), [$depth - 1]);
    case 1: return usort_of($depth);
    case 2: foreach (generate($depth) as $one); return;
    case 3: return iterator_to_array(delegate($depth), false);
    case 4: foreach (delegate_twice($depth) as $one); return;
    case 5: return new Circle($depth);
    case 6: return isset($shape->missing) && $shape->missing = $shape->absent;
    case 7: $shape->anything($depth); Circle::something($depth); return;
    case 8: return $shape($depth) ?? "$shape" . strlen($shape);
    case 9: $shape[] = $shape[$depth]; unset($shape[1]); foreach ($shape as $one); return count($shape) + strlen(json_encode($shape));
    case 10: $shape->round($depth); ($shape->bound($depth))(); return;
    case 11: return Suit::Hearts->area($depth);
    case 12: return fails($depth);
    case 13: try { thrown($depth); } catch (\LogicException $error) { step($depth - 1, 11); } return;
    case 14: return in_fiber($depth);
    case 15: return $undefined . [1][7];
    case 16: return include $included;
    case 17: return eval("return \\Told\\step($depth - 1, $seed + 3);");
    case 18: return evaluate();
    case 19: return preg_replace_callback('/a/', function ($match) use ($depth) { step($depth - 1, 14); return ""; }, "bab");
    case 20: return call_user_func_array([new \ReflectionFunction('Told\step'), "invoke"], [$depth - 1, $seed + 1]);
    case 21: return class_exists("Missing\\C$seed") || by_reference($GLOBALS["argv"]);
    case 22: ob_start(function ($text) { return strtoupper($text); }); echo step($depth - 1, 5) ?? "a"; return ob_end_clean();
    default: return walk_of();
    }
}

function evaluate(): void {
    static $made = 0;
    $made++;
    eval("function made_$made() {\n\n \\Told\\leaf(); }" . str_repeat("\n", $made % 7) . "made_$made();");
}

function recurse(int $depth): void {
    $depth ? recurse($depth - 1) : leaf();
}

for ($seed = 0; $calls < $wanted; $seed++) {
    step($seed % 7, $seed * 5 + intdiv($seed, 24));
    if ($seed % 256 == 0) recurse(300);
}
register_shutdown_function(function () use ($told_path) {
    global $told;
    leaf();
    $text = "";
    foreach ($told as $stack => $count) $text .= "$count $stack\n";
    file_put_contents($told_path, $text);
});
