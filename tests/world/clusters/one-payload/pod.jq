.spec.containers |= map(select(.name != "payload-1" and .name != "payload-2"))
| (.spec.containers[] | select(.name == "pilot")).env |= map(select(.name != "GLIDEPOD_PAYLOAD_CONTAINERS" and .name != "NUM_CPUS"))
| (.spec.containers[] | select(.name == "pilot")).env += [{name: "GLIDEPOD_PAYLOAD_CONTAINERS", value: "1"}, {name: "NUM_CPUS", value: "1"}]
