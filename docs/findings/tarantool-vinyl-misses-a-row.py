"""python tarantool-vinyl-misses-a-row.py: needs the program tarantool, of Debian for example."""

import subprocess
import tempfile

SCRIPT = """
local fiber = require('fiber')
box.cfg{work_dir = arg[1], log_level = 1}
local rows = box.schema.space.create('rows', {engine = 'vinyl'})
rows:create_index('primary', {parts = {1, 'unsigned'}})
rows:create_index('by_value', {parts = {2, 'unsigned'}, unique = false})
for i = 1, 3 do rows:insert{i, 70 + i} end
local function show(who) print(who, unpack(rows.index.by_value:select())) end
local continue = fiber.channel()
local reader = fiber.new(function()
    box.begin()
    show('the reader:      ')
    continue:get()
    show('the reader again:')
    print('by the primary key:', rows:count() .. ' rows')
    box.commit()
end)
reader:set_joinable(true)
fiber.sleep(0.1)
rows:update(2, {{'=', 2, 75}})  -- commits by itself
show('another reader:  ')
continue:put(true)
reader:join()
print('both committed') os.exit()
"""
with tempfile.TemporaryDirectory() as folder:
    subprocess.run(["tarantool", "-", folder], input=SCRIPT, text=True, check=True)
