"""What the article's training program asks of Spark, where `muster run` starts its tasks instead."""
