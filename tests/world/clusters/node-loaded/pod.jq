(.spec.containers[] | select(.name == "pilot")).env += [{name: "GLIDEPOD_PULL_PATIENCE", value: "5s"}]
