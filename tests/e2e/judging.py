"""What judges have in common: they print lines "ok: WHAT" and "not ok: WHAT", each "not ok" after what is wrong (lib.sh, judged_by)."""


def tell(what, wrong):
    for line in wrong[:20]:
        print(f"   {line}")
    if len(wrong) > 20:
        print(f"   and {len(wrong) - 20} more")
    print(f"{'not ok' if wrong else 'ok'}: {what}")
