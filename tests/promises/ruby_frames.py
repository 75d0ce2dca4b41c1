#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=ruby changes nothing: a Ruby program has the same output, status, descriptors, masks of signals,
directory, environment and options as without cairn, also where it collects, compacts, forks, makes code and threads, runs
out of its stack and is interrupted by signals; and a program without Ruby is as it was."""

import shutil

import cairn_test as t

LOOK = r"""
class Node
  attr_accessor :following, :data
  def method_missing(name, *) = name.to_s * 20
  def respond_to_missing?(*) = true
end

def generate(count) = Enumerator.new { |out| count.times { |i| out << "x" * (3000 + i % 7) } }

def work(i)
  generate(3).each { |text| text.gsub(/x+/) { |found| found.size.to_s } }
  node = Node.new
  node.following, node.data = node, [i, node.missing]
  eval("def made_#{$$}_#{i % 20}(list) = list.map { |one| one + 'y' * 50 }\nmade_#{$$}_#{i % 20}(['a'])")
  begin
    raise "caught" if i.even?
  rescue RuntimeError => error
    error.backtrace.size
  ensure
    fiber = Fiber.new { Fiber.yield "z" * i; "z" * 500 }
    fiber.resume
    fiber.resume if i.odd?
  end
  Thread.new { [3, 1, 2].sort_by { |one| "t" * one * 100 } }.join if i % 10 == 0
end

def deeper(i) = [i].each { |one| deeper(one + 1) }

count = 0
trap("USR1") { count += "s".*(5000).size }
100.times do |i|
  work(i)
  Process.kill("USR1", $$) if i % 10 == 0
  GC.start if i % 25 == 0
  GC.compact if i % 40 == 0
end
sleep 0.001 until count == 50_000
begin
  deeper(0)
rescue SystemStackError
  puts "deep"
end
child = fork { 50.times { |i| work(i) }; exit! 3 }
Process.wait(child)
puts $?.exitstatus, 3.times.map { |i| Ractor.new(i) { |one| ("r" * 1000 * one).size } }.sum(&:take)
puts File.readlines("/proc/thread-self/status").grep(/^(Sig[^Q]|Shd)/)
puts Dir.children("/proc/self/fd").map { |one| File.readlink("/proc/self/fd/#{one}") rescue nil }.compact.grep_v(/^(pipe|socket|anon_inode|.proc)/).sort
puts ENV.sort.map { |pair| pair.join("=") }.grep_v(/^(_|CAIRN|LD_PRELOAD)/), Dir.pwd, $0, ARGV.inspect
exit 7
"""
OPTION = ["--frames=ruby"]
shell = ["sh", "-c", "exec 7</dev/null; ls /proc/self/fd | wc -l; ulimit -a; trap; exit 3"]
t.record(shell, options=OPTION)[0].check_like("no Ruby", t.run(shell))

ruby = shutil.which("ruby")
if ruby:
    program = f"{t.fresh_path('look')}.rb"
    with open(program, "w", encoding="utf-8") as source:
        source.write(LOOK)
    for mode in ([], ["--yjit", "--yjit-call-threshold=5"]):
        argv = [ruby, "-W0", *mode, program, "one"]
        plain = t.run(argv)
        t.check_equal(f"{mode}: plain", plain.status, 7)
        result, recording = t.record(argv, options=OPTION)
        result.check_like(f"{mode}: recorded", plain)
        found = t.run_cairn("report", "--view", "tree", "--print", recording).out.decode()
        t.check("stacks have its frames" not in t.run_cairn("info", recording).out.decode() or "Object#work" in found,
                f"{mode}: stacks have frames of Ruby")
else:
    t.skip_part("ruby is not installed")
t.finish()
