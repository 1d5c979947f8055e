// The pointer on the map: to point at, choose, move and enlarge.

import { byId } from "./dom.js";
import { beginning } from "./text.js";

const CLICK_PX = 5;
const TIP_CHARS = 140;

export function pointing(map, { memories, state }) {
  const over = byId("over");
  const tip = byId("tip");
  let from = null;
  let isMoved = false;
  const place = (event) => {
    const box = over.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const point = (i, [px, py] = [0, 0]) => {
    if (map.hover !== i) {
      map.hover = i;
      map.ask();
    }
    tip.hidden = i < 0;
    over.style.cursor = i < 0 ? "" : "pointer";
    if (i < 0) return;
    tip.textContent = beginning(memories.text[i], TIP_CHARS);
    tip.style.left = `${Math.max(4, Math.min(px + 14, map.view.width - tip.offsetWidth - 6))}px`;
    tip.style.top = `${py + 18 + tip.offsetHeight > map.view.height ? Math.max(4, py - tip.offsetHeight - 12) : py + 18}px`;
  };
  over.addEventListener("pointerdown", (event) => {
    from = place(event);
    isMoved = false;
    over.setPointerCapture(event.pointerId);
  });
  over.addEventListener("pointermove", (event) => {
    const to = place(event);
    if (!from) {
      if (event.pointerType !== "touch") point(map.at(...to), to);
      return;
    }
    if (!isMoved && Math.hypot(to[0] - from[0], to[1] - from[1]) < CLICK_PX) return;
    isMoved = true;
    map.view.move(to[0] - from[0], to[1] - from[1]);
    from = to;
    point(-1);
    map.ask();
  });
  over.addEventListener("pointerup", (event) => {
    if (from && !isMoved) state.select(map.at(...place(event)));
    from = null;
  });
  over.addEventListener("pointercancel", () => (from = null));
  over.addEventListener("pointerleave", () => point(-1));
  const zoom = (factor, at = []) => {
    map.view.zoom(factor, ...at);
    map.ask();
  };
  over.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // else the page could not be scrolled past the map
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 240), place(event));
  }, { passive: false });
  over.addEventListener("dblclick", (event) => zoom(1.8, place(event)));
  const whole = () => {
    map.view.whole();
    map.ask();
  };
  byId("nearer").addEventListener("click", () => zoom(1.4));
  byId("farther").addEventListener("click", () => zoom(1 / 1.4));
  byId("whole").addEventListener("click", whole);
  return { "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: whole };
}
