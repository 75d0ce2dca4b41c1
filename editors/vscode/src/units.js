// SPDX-License-Identifier: Apache-2.0
// Numbers as cairn's reports have them (tool/base/units.c).
"use strict";

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; Math.abs(bytes) >= 1023.5 && unit + 1 < units.length; unit++) bytes /= 1024;
  return `${bytes.toFixed(unit > 0 && Math.abs(bytes) < 99.95 ? 1 : 0)} ${units[unit]}`;
}

function count(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ",");
}

function counted(number, one) {
  return `${count(number)} ${one}${number === 1 ? "" : "s"}`;
}

module.exports = { size, count, counted };
