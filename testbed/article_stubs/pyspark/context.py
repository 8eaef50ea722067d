class SparkContext:
    def __init__(self, conf):
        pass
