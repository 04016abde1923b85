"""The Wizard-of-Oz console: what it shows, what a person's acts become, and who sits where.

- the node: `node`, `ports`, `page_handler` (what each page is given, and where its messages go), `view_command`
- shown: `feed`, `shadows`, `response_time`, `robot_sound` (its voice and ears)
- acts: `actions`, the room `driving`, `canned_phrases`, `draft_review`, `signing` (requests to the guard)
- seats: `occupancy`, `seat_requests`, `human_nodes`
"""
