from wirehead import WireheadManager

if __name__ == "__main__":
    WireheadManager(config_path="config.yaml").run_manager()
