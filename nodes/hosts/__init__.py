"""One graph on more than one machine: keys, and the gateway that joins the runs of two hosts."""
