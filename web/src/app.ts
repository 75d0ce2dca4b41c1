// SPDX-License-Identifier: Apache-2.0
// What the screens have in common: the model, the state, and how to change it.

import type { Model } from "./model";
import type { State } from "./state";
import type { View } from "./view";

export interface App {
  readonly model: Model;
  state: State;
  view: View;
  /** Changes the state, the address and the screen; `isStep` false: no new entry of the history. */
  set(patch: Partial<State>, isStep?: boolean): void;
}

export interface Screen {
  readonly element: HTMLElement;
  update(view: View): void;
}

/** A search as a regular expression where it is one, else as plain text; null: no search. */
export function matcher(search: string): ((text: string) => boolean) | null {
  if (!search) return null;
  try {
    const pattern = new RegExp(search, "i");
    return (text) => pattern.test(text);
  } catch {
    const plain = search.toLowerCase();
    return (text) => text.toLowerCase().includes(plain);
  }
}

/** The state that shows only stacks through something. */
export function focused(state: State, kind: string, key: string): Partial<State> {
  const focus = `${kind}:${key}`;
  return { focus: state.focus.includes(focus) ? state.focus : [...state.focus, focus], zoom: "" };
}
