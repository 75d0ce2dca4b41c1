// SPDX-License-Identifier: Apache-2.0
// Small controls that several screens use.

import { h } from "./dom";

export interface Option {
  value: string;
  label: string;
}

export function option(value: string, label: string): Option {
  return { value, label };
}

export function choice(
  id: string,
  label: string,
  value: string,
  options: Option[],
  onchange: (value: string) => void,
): HTMLElement {
  const select = h(
    "select",
    { id, onchange: () => onchange(select.value) },
    options.map((one) => h("option", { value: one.value, selected: one.value === value }, one.label)),
  );
  return h("label", { class: "control" }, h("span", {}, label), select);
}

export function toggle(id: string, label: string, help: string, isOn: boolean, onclick: () => void): HTMLElement {
  return h(
    "button",
    { type: "button", id, class: "toggle", title: help, "aria-pressed": isOn ? "true" : "false", onclick },
    label,
  );
}
