# SPDX-License-Identifier: Apache-2.0
# Splits lines of text into tables and groups them, for what frames of Ruby cost (bench/frames.py).
rows = []
def parse(i) = "name=#{i};value=#{i * 7919 % 997}".split(";").map { |x| x.split("=") }.to_h
class Store
  def initialize; @by = Hash.new { |h, k| h[k] = [] }; end
  def add(row) = @by[row["value"]] << row.merge("id" => row["name"].to_i, "text" => "x" * 60)
  def report = @by.map { |k, list| [k, list.map { |r| r["text"] + r["name"] }.join(",").size] }.sort_by(&:last)
end
store = Store.new
60000.times { |i| store.add(parse(i)) }
puts store.report.last.inspect
