# SPDX-License-Identifier: Apache-2.0
# Allocates by a native function, in stacks of many kinds, and tells each stack as caller_locations has it at that
# moment, with the classes that rb_profile_frames says: ruby calls.rb TOLD CALLS
require "fiddle"
require "fiber"
require "set"
require "monitor"

module Told
  PATH, WANTED = ARGV
  ALL = Fiddle.dlopen(nil)
  MALLOC = Fiddle::Function.new(ALL["malloc"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_VOIDP)
  FRAMES = Fiddle::Function.new(ALL["rb_profile_frames"], [Fiddle::TYPE_INT, Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP,
                                Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT, need_gvl: true)
  NAME = Fiddle::Function.new(ALL["rb_profile_frame_qualified_method_name"], [Fiddle::TYPE_UINTPTR_T],
                              Fiddle::TYPE_UINTPTR_T, need_gvl: true)
  MOST = 1024
  OUTERMOST = Fiber.current
  @counts = Hash.new(0)
  @calls = 0
  class << self
    attr_reader :counts
    attr_accessor :calls
  end

  # Classes without a name are left out, and the addresses of objects.
  def self.plain(name)
    name.gsub(/#<(Class|Module|Refinement):0x\h+>(::\w+)*[#.]/, "").gsub(/#<([\w:]+):0x\h+>/) { "#<#{$1}>" }
  end

  # Of the method, the innermost frame first: what runs here is left out.
  def self.qualified
    buffer = Fiddle::Pointer.malloc(MOST * 8, Fiddle::RUBY_FREE)
    count = FRAMES.call(0, MOST, buffer, nil)
    buffer[0, count * 8].unpack("Q*").drop(3).map { |frame| Fiddle.dlunwrap(NAME.call(frame)) }
  end

  def self.tell
    places = caller_locations(1)
    names = qualified
    # It lists what C yields to, too, and which frames those are cannot be told; and one around the file.
    is_sure = names.size == places.size + (Fiber.current == OUTERMOST ? 1 : 0)
    stack = places.each_with_index.map do |place, i|
      before = place.label[0, place.label.size - place.base_label.size]
      "#{plain(before + (is_sure && names[i] || place.base_label))}:#{place.path}:#{place.lineno}"
    end
    stack.unshift("?") unless is_sure
    @counts[stack.join("\t")] += 1
    @calls += 1
  end

  def self.save
    File.write(PATH, counts.map { |stack, count| "#{count} #{stack}\n" }.join)
  end
end

def leaf
  Fiddle.free(Told::MALLOC.call(12345).to_i); Told.tell
end

module Rounded
  def round(depth) = step(depth - 1, 2)
  def scaled(depth)
    [depth].each { |one| leaf }
    super
  end
end

module Counted
  def scaled(depth) = [1].sum { |one| step(depth - 1, one + 7) || 0 }
end

module Tools
  module_function
  def both(depth) = [depth].map { |one| step(one - 1, 3) }
end

module Finer
  refine String do
    def refined(depth) = step(depth - 1, 9)
  end
end
using Finer

class Shape
  include Comparable, Enumerable, Tools
  attr_reader :depth
  def initialize(depth = 0)
    @depth = depth
    step(depth - 1, 7) if depth > 0
  end
  def <=>(other) = leaf || 0
  def each
    yield 1
    leaf
    yield 2
  end
  def to_s = leaf.to_s
  def inspect = (leaf; "shape")
  def hash = (leaf; 1)
  def eql?(other) = (leaf; true)
  def ===(other) = (leaf; true)
  def coerce(other) = (leaf; [other, 1])
  def [](depth) = step(depth - 1, 4)
  def []=(depth, value); leaf; end
  def scaled(depth) = leaf
  def to_ary = (leaf; [1, 2])
  def to_proc = proc { |one| leaf }
  def deconstruct = (leaf; [1])
  def marshal_dump = (leaf; 1)
  def marshal_load(one) = leaf
  def method_missing(name, depth = 0) = step(depth - 1, 5)
  def respond_to_missing?(name, all) = (leaf; true)
  def self.const_missing(name) = leaf
  def self.inherited(one) = leaf
  def self.method_added(name) = (leaf if Told.calls > 0)
  def self.build(depth) = new(depth)
  class << self
    def twice(depth) = 2.times { |one| step(depth - 1 - one, 6) }
  end
  define_method(:defined) { |depth| step(depth - 1, 1) }
  alias other round rescue nil
  alias area scaled
  protected def hidden = leaf
end

class Circle < Shape
  include Rounded
  prepend Counted
  alias other round
  def scaled(depth) = super
  Inner = Struct.new(:depth) do
    def inside = step(depth - 1, 8)
  end
end

def fails(depth)
  raise ArgumentError, "caught"
rescue ArgumentError
  step(depth - 1, 8)
ensure
  leaf
end

def passes(depth)
  begin
    raise "passes" if depth > -1
  ensure
    [1].each { leaf }
  end
end

def again(depth)
  tries = 0
  begin
    tries += 1
    raise "again" if tries < 2
    step(depth - 1, 3)
  rescue
    leaf
    retry
  end
end

def in_fiber(depth)
  fiber = Fiber.new do |one|
    step(one - 1, 1)
    Fiber.yield
    leaf
  end
  fiber.resume(depth)
  leaf
  fiber.resume
end

def in_thread(depth)
  Thread.new { step(depth - 1, 2) }.join
end

def enumerates(depth)
  steps = Enumerator.new { |out| out << step(depth - 1, 4); leaf; out.yield 1 }
  steps.next
  steps.next
  steps.size
  (1..3).lazy.map { |one| leaf; one }.select(&:odd?).first(1)
end

def made_in(depth)
  shape = Shape.new
  def shape.own(depth) = [1].each { step(depth - 1, 10) }
  shape.own(depth)
  Class.new(Circle) { def unnamed(depth) = step(depth - 1, 3) }.new.unnamed(depth)
end

def made_by(depth)
  Circle.send(:define_method, :made) { |one| leaf; one }
  Circle.new.made(depth)
end

def evaluates(depth)
  @made = (@made || 0) + 1
  eval("def made_#{@made % 50}\n\n leaf; end\n" + "\n" * (@made % 7) + "made_#{@made % 50}; step(#{depth} - 1, 3)")
  Shape.new.instance_eval { leaf }
  Shape.class_eval("leaf\n[1].each { leaf }", "made.erb", 40)
  binding.eval("leaf", "bound", 3)
  Object.new.instance_exec(depth) { |one| step(one - 1, 11) }
end

def catches(depth)
  catch(:done) { [1].each { |one| step(depth - 1, 12); throw :done } }
  loop { leaf; raise StopIteration }
end

def orders(depth)
  [3, 1, 2].sort { |a, b| step(depth - 2, 13) if a == 1; a <=> b }
  [3, 1].sort_by { |one| leaf; one }
  [1, 2].inject { |sum, one| leaf; sum + one }
  [Shape.new, Shape.new].max
  { 1 => 2 }.each { |key, value| leaf }.map { |key, value| leaf }
  [[1, 2]].each_with_index.to_h { |(a, b), i| leaf; [a, b] }
end

def texts(depth)
  "bab".gsub(/a/) { step(depth - 1, 14); "" } + "#{Shape.new}" + format("%p", Shape.new)
  "refined".refined(depth)
  { Shape.new => 1 }[Shape.new]
  Set[Shape.new]
end

def patterns(depth)
  case 1
  when Shape.new then leaf
  end
  case Shape.new
  in [one] then step(depth - 1, 15)
  end
  first, second = Shape.new
  [1].each(&Shape.new)
  1 + Shape.new
end

def objects(depth)
  shape = Circle.new
  shape[depth] = shape[depth]
  Marshal.load(Marshal.dump(shape))
  shape.anything(depth)
  shape.respond_to?(:nothing)
  shape.to_a.size + shape.first + shape.entries.size
  Shape.const_get(:Absent)
  Class.new(Shape).new
  Circle.class_eval { def added = leaf }
  shape.method(:round).to_proc.call(depth)
  shape.public_send(:defined, depth)
  Shape.instance_method(:scaled).bind_call(shape, 1)
  Circle::Inner.new(depth).inside
end

def calls_of(depth)
  adds = ->(one, other) { step(one - 1, other) }
  adds.curry[depth][5]
  (method(:leaf) >> ->(one) { leaf }).call
  [Shape.new].each(&:hash)
  depth.then { |one| step(one - 1, 16) }.tap { leaf }
  Monitor.new.synchronize { Mutex.new.synchronize { leaf } }
  ObjectSpace.each_object(Class).first(1).each { leaf }
  TracePoint.new(:call) { |point| leaf if point.method_id == :nothing_much }.enable { nothing_much }
end

def nothing_much; end

def included(depth)
  load Told::PATH + ".inc.rb"
end

def step(depth, seed)
  return leaf if depth <= 0
  case seed % 25
  when 0 then [depth - 1].map { |one| step(one, seed + 5) }
  when 1 then orders(depth)
  when 2 then in_thread(depth)
  when 3 then enumerates(depth)
  when 4 then in_fiber(depth)
  when 5 then Shape.build(depth)
  when 6 then Shape.twice(depth)
  when 7 then Circle.new.round(depth)
  when 8 then Circle.new.scaled(depth)
  when 9 then Tools.both(depth)
  when 10 then Circle.new.send(:both, depth)
  when 11 then fails(depth)
  when 12 then begin passes(depth) rescue step(depth - 1, 17) end
  when 13 then again(depth)
  when 14 then made_in(depth)
  when 15 then made_by(depth)
  when 16 then evaluates(depth)
  when 17 then catches(depth)
  when 18 then texts(depth)
  when 19 then patterns(depth)
  when 20 then objects(depth)
  when 21 then calls_of(depth)
  when 22 then included(depth)
  when 23 then Circle.new.other(depth)
  else Shape.new.defined(depth)
  end
  nil
end

def recurse(depth) = depth > 0 ? recurse(depth - 1) : leaf

File.write(Told::PATH + ".inc.rb", "leaf\n[1].each do\n  step(1, 3)\nend\n")
seed = 0
while Told.calls < Told::WANTED.to_i
  step(seed % 6, seed * 7 + seed / 25)
  recurse(300) if seed % 256 == 0
  GC.start if seed % 100 == 0
  GC.compact if seed % 300 == 299
  seed += 1
end
at_exit { leaf; Told.save }
