class Dataset:
    pass


class IterableDataset(Dataset):
    pass


class Sampler:
    pass
