"""Each script of lua/ on a real Redis, run by its name with its bare KEYS and ARGV."""
