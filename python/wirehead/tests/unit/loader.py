import torch  # noqa: F401  # pylint: disable=unused-import
from wirehead import MongoTupleheadDataset

dataset = MongoTupleheadDataset(config_path="config.yaml")

for i in range(100):
    data = dataset[[i % 10]]
    sample, label = data[0][0], data[0][1]
    print("Loader, index: ", i)

print("Unit example passed successfully")
