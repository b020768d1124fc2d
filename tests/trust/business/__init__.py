"""A Django app whose workflows write down what they do, and misbehave when told to."""
