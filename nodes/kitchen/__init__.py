"""A simulated kitchen with a person in it: the world as data, scenario files, skills, and a scripted robot for them."""
