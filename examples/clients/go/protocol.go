// The protocol of docs/exec.md: a request in a line, its answer in a line. A client of yours is a function `do` beside it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type object = map[string]any

// A request, with the fields of all of them.
type request struct {
	Id, Value        int
	Do, Key, Level   string
	List             bool
	Registers, Lists []string
}

// Refused is the error of a commit that has changed nothing, nor ever will.
type refused string

func (why refused) Error() string { return string(why) }

// Unknown is the error of what a client cannot do.
type unknown string

func (what unknown) Error() string { return string(what) }

// The type of an answer: before the commit nothing is applied.
func kind(asked string, err error) string {
	switch err.(type) {
	case nil:
		return "ok"
	case unknown:
		return "error"
	case refused:
		return "fail"
	}
	return map[bool]string{true: "info", false: "fail"}[asked == "commit"]
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r request
		json.Unmarshal(lines.Bytes(), &r)
		value, err := do(r)
		answer := object{"id": r.Id, "type": kind(r.Do, err), "value": value}
		if err != nil {
			answer["error"] = err.Error()
		}
		text, _ := json.Marshal(answer)
		fmt.Println(string(text))
	}
}
