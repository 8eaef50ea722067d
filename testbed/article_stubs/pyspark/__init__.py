"""The parts of Spark that the article's training program uses; here `muster run` starts its tasks.
"""
