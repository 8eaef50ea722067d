"""Prints pairs of users and items as CSV: a user likes the items of one topic in eight, and some others."""

import random

random.seed(1)
print("user,age,item,topic,price,clicked")
for _ in range(50_000):
    user, item = random.randrange(400), random.randrange(200)
    likes = user % 8 == item % 8
    clicked = int(random.random() < (0.5 if likes else 0.02))
    print(f"u{user},{20 + user % 50},i{item},t{item % 8},{1 + item % 7},{clicked}")
