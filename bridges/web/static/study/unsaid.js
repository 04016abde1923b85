// Answers that stand on the page and not in the session: a link that went away may have swallowed them.
export function unsaid(items, given, known) {
  return items.map((item) => [item.id, given(item)]).filter(([id, value]) => value !== (known?.[id] ?? ""));
}
