// etcd's JSON gateway: reads of one revision, and a commit that compares what was read.
// go build -o etcd-client etcd.go protocol.go && isocheck run exec:"./etcd-client http://127.0.0.1:2379"
package main

import ("bytes"; "encoding/json"; "fmt"; "net/http"; "os")

var made []string            // the keys that setup has made
var own, seen map[string]any // what the transaction has written; the revision of what it has read
var revision any             // of all its reads, from the first one on

func post(path string, body object) (found object) {
	text, _ := json.Marshal(body)
	answer, err := http.Post(os.Args[1]+"/v3/kv/"+path, "application/json", bytes.NewReader(text))
	if err != nil || answer.StatusCode != 200 { panic(fmt.Sprint("etcd: ", err)) }
	defer answer.Body.Close()
	json.NewDecoder(answer.Body).Decode(&found)
	return
}

func read(key string, list bool) (value any) {
	if written, there := own[key]; there { return written }
	found := post("range", object{"key": []byte("isocheck/" + key), "revision": revision})
	if seen[key] = "0"; revision == 0 { revision = found["header"].(object)["revision"] }
	if list { value = []any{} }
	if rows, there := found["kvs"].([]any); there {
		var text []byte // encoding/json has bytes in base64, as the gateway has
		row, _ := json.Marshal(rows[0].(object)["value"])
		json.Unmarshal(row, &text)
		exact := json.NewDecoder(bytes.NewReader(text)) // a float64 holds no number of 64 bits
		exact.UseNumber()
		exact.Decode(&value)
		seen[key] = rows[0].(object)["mod_revision"]
	}
	return
}

func do(r request) (value any, err error) {
	defer func() { if why := recover(); why != nil { err = fmt.Errorf("%v", why) } }()
	switch r.Do {
	case "hello": return object{"name": "etcd through Go", "steps": true, "levels": [][]string{{"serializable", "sser"}},
		"lacks": []string{"rows", "range reads", "savepoints"}}, nil
	case "setup", "remove":
		for _, key := range append(made, append(r.Registers, r.Lists...)...) { post("deleterange", object{"key": []byte("isocheck/" + key)}) }
		made = append(r.Registers, r.Lists...)
	case "begin": own, seen, revision = object{}, object{}, 0
	case "read": return read(r.Key, r.List), nil
	case "write": own[r.Key] = r.Value
	case "append": own[r.Key] = append(append([]any{}, read(r.Key, true).([]any)...), r.Value)
	case "rollback":
	case "commit":
		compare, success := []object{}, []object{}
		for key, at := range seen { compare = append(compare, object{"key": []byte("isocheck/" + key), "target": "MOD", "mod_revision": at}) }
		for key, value := range own { text, _ := json.Marshal(value); success = append(success, object{"request_put": object{"key": []byte("isocheck/" + key), "value": text}}) }
		if post("txn", object{"compare": compare, "success": success})["succeeded"] != true { return nil, refused("a key that was read has changed") }
	default: return nil, unknown(r.Do)
	}
	return true, nil
}
