class SparkConf:
    def setAppName(self, name):
        return self
