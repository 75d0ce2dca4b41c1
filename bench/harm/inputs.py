# SPDX-License-Identifier: Apache-2.0
"""Inputs of the programs in programs.txt, the same in every run."""

import math
import random
import struct

SMALL = {
    "walk.c": """#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 100, sum = 0;
    for (int i = 0; i < rounds; i++) {
        char *text = malloc(i + 20);
        sum += sprintf(text, "stone %d", i);
        free(text);
    }
    printf("%d\\n", sum);
    return 0;
}
""",
    "small.c": "int sum(const unsigned char *b, int n) { int s = 0; while (n--) s += *b++; return s; }\n",
    "calc_plain.c": "int f(int a) { int b; if (a > 3) b = a; return b; }\nint g(int *p) { return p ? *p : *p + 1; }\n",
    "hello.asm": """section .data
text: db "stone", 10
section .text
global _start
_start: mov rax, 1
 mov rdi, 1
 mov rsi, text
 mov rdx, 6
 syscall
 mov rax, 60
 mov rdi, 3
 xor rdi, rdi
 syscall
""",
    "walk.ml": """let rec build n = if n = 0 then [] else (string_of_int (n * 7919 mod 4810)) :: build (n - 1)
let () =
  let sorted = List.sort compare (build 20000) in
  Printf.printf "%d %s\\n" (List.length sorted) (List.nth sorted 777)
""",
    "scan.re": """/*!re2c
re2c:define:YYCTYPE = char; re2c:yyfill:enable = 0;
*/
int scan(const char *YYCURSOR) { const char *YYMARKER;
/*!re2c
 [0-9]+ { return 1; }
 [a-z]+ ("-" [a-z]+)* { return 2; }
 * { return 0; }
*/ }
""",
    "calc.y": """%{
#include <stdio.h>
int yylex(void); void yyerror(const char *s) { puts(s); }
%}
%token NUMBER
%left '+'
%left '*'
%%
line: sum '\\n' { printf("%d\\n", $1); } ;
sum: sum '+' sum { $$ = $1 + $3; } | sum '*' sum { $$ = $1 * $3; } | '(' sum ')' { $$ = $2; } | NUMBER ;
%%
int main(void) { return yyparse(); }
""",
    "calc.l": """%option noyywrap nounput noinput
%{
#include <stdlib.h>
#include "calc.tab.h"
%}
%%
[0-9]+ { yylval = atoi(yytext); return NUMBER; }
[ ] ;
.|\\n { return yytext[0]; }
""",
    "walk.i": "%module walk\n%{\nint sum(int a, int b);\n%}\nint sum(int a, int b);\nstruct stone { int height; char *name; };\n",
    "Doxyfile": "INPUT = walk.c small.c calc_plain.c\nEXTRACT_ALL = YES\nGENERATE_LATEX = NO\nGENERATE_XML = YES\n"
                "HTML_TIMESTAMP = NO\nQUIET = YES\nNUM_PROC_THREADS = 4\nSOURCE_BROWSER = YES\n",
    "walk.1": ".TH WALK 1 2020-02-02\n.SH NAME\nwalk \\- walks over stones\n.SH OPTIONS\n" +
              "".join(f".TP\n.B \\-{c}\nis stone {i}\n" for i, c in enumerate("abcdefghij")),
    "scene.pov": """camera { location <0, 2, -5> look_at <0, 1, 2> } light_source { <2, 4, -3> color rgb 1 }
#declare i = 0; #while (i < 30) sphere { <sin(i), 0.2 * i, 4 + cos(i)>, 0.3 pigment { color rgb <1, i / 30, 0> } }
#declare i = i + 1; #end plane { y, -1 pigment { checker color rgb 0.2 color rgb 0.9 } }
""",
    "haproxy.in": """global
 nbthread 4
defaults
 mode http
 timeout connect 20s
 timeout client 20s
 timeout server 20s
frontend f
 bind 127.0.0.1:FRONT
 default_backend b
backend b
 server s 127.0.0.1:BACK
""",
    "ask_dns.py": """import socket, sys
question = b'\\x07\\x07\\x01\\x00\\x00\\x01' + bytes(6) + b'\\x04walk\\x07example\\x00\\x00\\x01\\x00\\x01'
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    one.settimeout(0.5)
    for turn in range(120):
        one.sendto(question, ('127.0.0.1', int(sys.argv[1])))
        try:
            print(one.recv(512).hex())
            break
        except OSError:
            pass
""",
    "walk.R": """set.seed(7); d <- data.frame(x = rnorm(2000), g = sample(letters, 2000, TRUE)); d$y <- 3 * d$x + 1
print(coef(lm(y ~ x, d))); print(head(tapply(d$x, d$g, mean)))
l <- lapply(1:5000, function(i) paste0("stone", i)); print(length(grep("7", unlist(l)))); gc() -> nothing
print(tryCatch(stop("no"), error = function(e) conditionMessage(e))); quit(status = 3)
""",
    "walk.ss": """(define (build n) (let loop ((i 0) (l '())) (if (= i n) l (loop (+ i 1) (cons (number->string (* i i)) l)))))
(do ((i 0 (+ i 1))) ((= i 30)) (collect)) (display (length (build 50000))) (newline)
(display (modulo (expt 7 2000) 1000007)) (newline) (exit 4)
""",
    "walk.pl": """app([], L, L). app([H|T], L, [H|R]) :- app(T, L, R).
rev([], []). rev([H|T], R) :- rev(T, S), app(S, [H], R).
nums(0, []) :- !. nums(N, [N|T]) :- M is N - 1, nums(M, T).
:- initialization((nums(300, L), rev(L, R), R = [X|_], write(X), nl, findall(Y, (member(Y, L), 0 is Y mod 7), Z), length(Z, N),
   write(N), nl, halt)).
""",
    "walk.lsp": """(println (apply + (map (fn (x) (* x x)) (sequence 1 3000))))
(set 'pids (map (fn (i) (fork (begin (sleep 1000) (exit i)))) (sequence 1 5)))
(println (map (fn (p) (last (wait-pid p))) pids))
(println (length (join (map string (sequence 1 5000)) ","))) (exit 5)
""",
    "walk_mu.js": "var a = []; for (var i = 0; i < 20000; i++) a.push('s' + i * 7919 % 4810); a.sort();\n"
                  "print(a.length, a[777], a.join('').length); try { null.x } catch (e) { print(e.name) }\n",
    "walk.lua": "local t = {}\nfor i = 1, 50000 do t[#t + 1] = ('stone %d'):format(i * 7919 % 4810) end\ntable.sort(t)\n"
                "print(#t, t[777], #table.concat(t))\nlocal co = coroutine.wrap(function() for i = 1, 9 do "
                "coroutine.yield(i) end end)\nprint(co() + co(), pcall(error, 'no'))\n"
                "print(io.popen('echo inner; exit 3'):read('a'))\nos.exit(7)\n",
    "walk.py": "import hashlib, threading\nd = {}\nfor i in range(300000):\n    d.setdefault(i * 7919 % 997, []).append(i)\n"
               "print(len(d), sum(map(sum, d.values())))\nr = []\n"
               "ts = [threading.Thread(target=lambda n=n: r.append(hashlib.sha1(b'x' * n).hexdigest())) for n in range(20)]\n"
               "[x.start() for x in ts]; [x.join() for x in ts]\nprint(sorted(r)[0])\nraise SystemExit(4)\n",
    "walk.sml": """fun build 0 = [] | build n = Int.toString (n * 7919 mod 4810) :: build (n - 1);
val l = build 50000; val () = print (Int.toString (size (String.concat l)) ^ "\\n");
val () = PolyML.fullGC (); val () = print (Int.toString (length (List.filter (fn s => size s = 3) l)) ^ "\\n");
val () = OS.Process.exit (Word8.fromInt 0 = 0w0 andalso true; OS.Process.failure);
""",
    "walk.nim": "import std/[tables, strutils, algorithm]\nvar t = initTable[int, seq[string]]()\n"
                "for i in 0 ..< 20000: t.mgetOrPut(i * 7919 mod 97, @[]).add($i)\nvar n = 0\n"
                "for k, v in t: n += v.join(\"\").len\necho t.len, \" \", n\n",
    "walk.cob": "identification division.\nprogram-id. walk.\ndata division.\nworking-storage section.\n01 n pic 9(5).\n"
                "01 s pic 9(9) value 0.\nprocedure division.\nperform varying n from 1 by 1 until n > 3000\n"
                "  compute s = s + function mod(n * 31, 481)\nend-perform.\ndisplay s.\nmove 6 to return-code.\nstop run.\n",
    "walk.a68": "BEGIN [1:2000] STRING s; FOR i TO 2000 DO s[i] := whole(i * 7919 MOD 4810, 0) OD; INT n := 0;\n"
                "FOR i TO 2000 DO n +:= UPB s[i] OD; print((whole(n, 0), new line)) END\n",
    "walk.php": "<?php $a = []; for ($i = 0; $i < 50000; $i++) $a[$i * 7919 % 997][] = \"stone $i\"; ksort($a);\n"
                "echo count($a), ' ', strlen(json_encode($a)), ' ', md5(serialize($a)), \"\\n\";\n"
                "function g() { foreach (range(1, 99) as $n) yield $n => str_repeat('x', $n); }\n"
                "foreach (g() as $n => $s) if ($n % 50 == 7) echo $n, ' ', strlen($s), \"\\n\"; echo shell_exec('echo in'); exit(5);\n",
    "walk.mod": "set I := 1..12; set J := 1..9; param c{i in I, j in J} := (i * 7 + j * 13) mod 17 + 1;\n"
                "var x{I, J}, binary; minimize z: sum{i in I, j in J} c[i, j] * x[i, j];\n"
                "s.t. a{i in I}: sum{j in J} x[i, j] = 1; s.t. b{j in J}: sum{i in I} x[i, j] >= 1; end;\n",
    "walk.v": "module walk; reg [31:0] s; integer i; initial begin s = 1; for (i = 0; i < 20000; i = i + 1)\n"
              "s = (s >> 1) ^ (s[0] ? 32'h80200003 : 0); $display(\"%h\", s); $finish; end endmodule\n",
    "walk.vhd": """entity walk is end;
architecture a of walk is signal clk : bit := '0'; signal n : integer := 0; begin
clk <= not clk after 1 ns; process (clk) begin if clk = '1' then n <= (n * 7 + 3) mod 481;
if n = 400 then report integer'image(n); end if; end if; end process; end;
""",
    "walk.cir": "walk\nv1 1 0 sin(0 1 1k)\nr1 1 2 1k\nc1 2 0 1u\n.tran 10u 2m\n.print tran v(2)\n.end\n",
    "SConstruct": "Program('walk', ['walk.c'])\nObject('small.c')\n",
    "walk.xsl": "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'><xsl:template match='/'>"
                "<o><xsl:for-each select='//p[h &gt; 2000]'><xsl:sort select='h' data-type='number'/><q n='{@i}'>"
                "<xsl:value-of select='h'/></q></xsl:for-each></o></xsl:template></xsl:stylesheet>\n",
    "walk.aln": "# STOCKHOLM 1.0\n" + "".join(f"s{i} ACGTTGCAAC{'ACGT'[i % 4]}GTCCGATTAGCAATCG\n" for i in range(6)) + "//\n",
}


def write_texts(place):
    for name, text in SMALL.items():
        (place / name).write_text(text)
    for i in range(200):
        directory = place / "tree" / f"d{i % 10}" / f"e{i % 3}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"stone{i}.txt").write_text(f"stone {i} is {i * 7919 % 4810} high\n" * (i % 9 + 1))
    lines = [f"{i * 2654435761 % 1000003}\tplace{i % 97}\tmoss {i}\n" for i in range(30000)]
    (place / "lines.txt").write_text("".join(lines))
    rows = [f"p{i % 17},{i * 31 % 4810}\n" for i in range(3000)]
    (place / "table.csv").write_text("p,h\n" + "".join(rows))
    points = "".join(f"<p i='{i}'><h>{i * 31 % 4810}</h></p>" for i in range(5000))
    (place / "walk.xml").write_text(f"<w>{points}</w>\n")


def write_media(place):
    pixels = bytes((x * y + c * 40) % 256 for y in range(60) for x in range(80) for c in range(3))
    (place / "picture.ppm").write_bytes(b"P6 80 60 255\n" + pixels)
    wave = b"".join(struct.pack("<h", int(9000 * math.sin(i / 20))) for i in range(44100))
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(wave), b"WAVE", b"fmt ", 16, 1, 1, 44100, 88200, 2, 16,
                       b"data", len(wave))
    (place / "tone.wav").write_bytes(head + wave)


def write_science(place):
    chance = random.Random(7)
    dna = "".join(chance.choices("ACGT", k=40000))
    (place / "dna.fa").write_text(f">walk\n{dna}\n")
    begins = [chance.randrange(39900) for _ in range(3000)]
    (place / "dna.fq").write_text("".join(f"@r{i}\n{dna[b:b + 90]}\n+\n{'I' * 90}\n" for i, b in enumerate(begins)))
    for name in "ab":
        begins = sorted(chance.randrange(90000) for _ in range(2000))
        (place / f"{name}.bed").write_text("".join(f"c1\t{b}\t{b + 40}\t{name}{i}\n" for i, b in enumerate(begins)))
    clauses = [[chance.choice((1, -1)) * v for v in chance.sample(range(1, 151), 3)] for _ in range(620)]
    (place / "walk.cnf").write_text("p cnf 150 620\n" + "".join(" ".join(map(str, c)) + " 0\n" for c in clauses))


def fill(place):
    write_texts(place)
    write_media(place)
    write_science(place)
