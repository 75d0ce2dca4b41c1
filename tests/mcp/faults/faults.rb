# SPDX-License-Identifier: Apache-2.0
# Five faults beside honest work: faults.rb NAME. The line to be found has its name behind it.
LISTENERS = []

def read_table(count)
  (0...count).map { |i| { name: "row #{i}", value: i } }
end

def answer(number)
  ("x" * 700).size + number
end

class Session
  def initialize(number)
    @state = "s" * (2000 + number % 3) # leak
    LISTENERS << self if number % 7 == 0
  end
end

def sessions(count)
  count.times do |i|
    Session.new(i)
    answer(i)
  end
end

class Cache
  def initialize
    @pages = {}
  end

  def find(number)
    @pages[number] ||= "page" * 600 # cache
  end
end

def look_ups(count)
  cache = Cache.new
  count.times do |i|
    cache.find(i)
    answer(i)
  end
end

def sort_table(rows)
  keys = "k" * (rows.size * 40_000) # peak
  keys.size
end

def parse(count)
  total = 0
  count.times do |i|
    total += ("the fields of a line " * 20).size # churn
  end
  total
end

def join(count)
  text = ""
  count.times do |i|
    text = text + "a piece of it" * 8 # grown
    answer(i)
  end
  text.size
end

rows = read_table(300)
case ARGV[0]
when "leak" then sessions(20_000)
when "cache" then look_ups(3000)
when "peak" then sort_table(rows)
when "churn" then parse(100_000)
when "grown" then join(2000)
end
